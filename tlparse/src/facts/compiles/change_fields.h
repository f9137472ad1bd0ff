// The fields of a change, of the answers and tables that have changes.
#pragma once

#include "base/fields.h"
#include "facts/compiles/change.h"

namespace tlparse {

template <>
struct LastOf<ChangeKind> {
  static constexpr ChangeKind value = ChangeKind::kSteps;
};

template <>
struct FieldsOf<Change> {
  using Of = Change;
  static constexpr std::string_view name = "change";
  static constexpr FieldList list{
      Field{"kind", &Of::kind},
      Field{"name", OrNull{&Of::name},
            "the environment variable; the option with its module; the local of the function"},
      Field{"value", OrNull{&Of::value},
            "of the variable; a Python literal or JSON of the option; the dimension; the backend; "
            "how many steps"},
      Field{"function", OrNull{&Of::function},
            "mark_dynamic: of which it is a local; fullgraph: which is compiled so"},
      Field{"file", OrNull{&Of::file}},
      Field{"text", [](const Of& of) { return TextOf(of); }, "the change as a person reads it"},
  };
};

}  // namespace tlparse
