// The name of one compile of one process, and its text forms.
//
// Part of libtrace::format: header-only, no dependency. Source: torch/_guards.py (class CompileId)
// of PyTorch 2.14. Ids are counters of one process: equal ids of two ranks name the same compile
// only if both ranks ran the same program.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// At least one of compiled_autograd_id and frame_id is set in a valid id; frame_compile_id is set
// exactly when frame_id is. All must fit 32 bits, because other readers of the format insist on it.
struct CompileId {
  std::optional<uint32_t> compiled_autograd_id;
  std::optional<uint32_t> frame_id;
  std::optional<uint32_t> frame_compile_id;  // 0 = first compile of the frame, n = n-th recompile

  static constexpr CompileId Frame(uint32_t frame, uint32_t frame_compile = 0) {
    return {std::nullopt, frame, frame_compile};
  }
  static constexpr CompileId CompiledAutograd(uint32_t id) {
    return {id, std::nullopt, std::nullopt};
  }

  constexpr bool empty() const { return !compiled_autograd_id && !frame_id; }
  friend constexpr bool operator==(const CompileId& a, const CompileId& b) {
    return a.compiled_autograd_id == b.compiled_autograd_id && a.frame_id == b.frame_id &&
           a.frame_compile_id == b.frame_compile_id;
  }
  friend constexpr bool operator!=(const CompileId& a, const CompileId& b) { return !(a == b); }
};

// The compile id in chromium events outside a compile.
inline constexpr std::string_view kNoCompileIdText = "None";

// `F/C`, `!A`, `!A/F/C`, or `None` for an empty id.
inline std::string ToString(const CompileId& id) {
  if (id.empty()) return std::string(kNoCompileIdText);
  std::string text;
  if (id.compiled_autograd_id) text.append("!").append(std::to_string(*id.compiled_autograd_id));
  if (id.frame_id) {
    if (!text.empty()) text += '/';
    text.append(std::to_string(*id.frame_id)).append("/");
    text.append(std::to_string(id.frame_compile_id.value_or(0)));
  }
  return text;
}

// The inverse of ToString. nullopt for anything else, `None` and an attempt suffix (`0/0_1`)
// included.
inline std::optional<CompileId> ParseCompileId(std::string_view text) {
  auto number = [&text]() -> std::optional<uint32_t> {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  };
  CompileId id;
  if (!text.empty() && text.front() == '!') {
    text.remove_prefix(1);
    id.compiled_autograd_id = number();
    if (!id.compiled_autograd_id) return std::nullopt;
    if (text.empty()) return id;
    if (text.empty() || text.front() != '/') return std::nullopt;
    text.remove_prefix(1);
  }
  id.frame_id = number();
  if (!id.frame_id || text.empty() || text.front() != '/') return std::nullopt;
  text.remove_prefix(1);
  id.frame_compile_id = number();
  if (!id.frame_compile_id || !text.empty()) return std::nullopt;
  return id;
}

}  // namespace LIBTRACE_EXPORT
