// Fields of what `tlparse status` says of files beside its rows.
#pragma once

#include "base/fields.h"
#include "facts/job/status.h"
#include "facts/ranks/unread_inputs.h"

namespace tlparse {

template <>
struct FieldsOf<StatusAnswer::EmptyLog> {
  using Of = StatusAnswer::EmptyLog;
  static constexpr FieldList list{
      Field{"rank", &Of::rank, "of the file's name"},
      Field{"log", &Of::path},
  };
};

template <>
struct FieldsOf<StatusAnswer::OtherFiles> {
  using Of = StatusAnswer::OtherFiles;
  static constexpr FieldList list{
      Field{"kind", &Of::kind, "a name of the table profile_kind"},
      Field{"count", &Of::count},
      Field{"ranks", &Of::ranks, "that these files name"},
  };
};

template <>
struct FieldsOf<UnreadInput> {
  using Of = UnreadInput;
  static constexpr FieldList list{
      Field{"rank", &Of::rank, "of a log or recorder dump, by its name"},
      Field{"path", &Of::path},
      Field{"reason", &Of::reason},
  };
};

}  // namespace tlparse
