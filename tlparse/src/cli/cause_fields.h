// The fields of causes and component differences, of the answers about caches, ranks and differences.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "facts/cache/cause.h"

namespace tlparse {

// Values of more bytes are cut.
inline constexpr std::size_t kMostValueBytes = 4096;
std::optional<std::string> CutValue(const std::optional<std::string>& value);
bool HasCutValue(const ComponentDifference& difference);

template <>
struct LastOf<CauseKind> {
  static constexpr CauseKind value = CauseKind::kUnlogged;
};

template <>
struct FieldsOf<ComponentDifference> {
  using Of = ComponentDifference;
  static constexpr std::string_view name = "difference";
  static constexpr std::string_view description =
      "a component whose hash differs, or that one side lacks (null); side a is the one compared "
      "with";
  static constexpr FieldList list{
      Field{"name", &Of::name, "of the component, e.g. inductor_config[max_fusion_size]"},
      Field{"a_hash", &Of::a_hash},
      Field{"a_value", [](const Of& of) { return CutValue(of.a_value); }},
      Field{"b_hash", &Of::b_hash},
      Field{"b_value", [](const Of& of) { return CutValue(of.b_value); }},
      Field{"is_cut", &HasCutValue, "a value had more than 4,096 bytes and was cut"},
      Field{"cause", &Of::cause},
  };
};

template <>
struct FieldsOf<Cause> {
  static constexpr FieldList list{
      Field{"cause", &Cause::kind},
      Field{"title", [](const Cause& cause) { return Title(cause.kind); }},
      Field{"is_note", [](const Cause& cause) { return IsNote(cause.kind); },
            "an expected difference or the state of a store: neither sets ranks apart nor fails a "
            "check"},
      Field{"text", &Cause::text, "one line: what differs, from what to what"},
      Field{"differences", &Cause::differences},
      Field{"explained_count", [](const Cause& cause) { return cause.explained.size(); }},
      Field{"explained", &Cause::explained, "differences that this cause explains"},
  };
};

}  // namespace tlparse
