// The text of a guard tree (dynamo_cpp_guards_str; built in torch/_dynamo/guards.py from
// torch/csrc/dynamo/guards.cpp):
//
//     TREE_GUARD_MANAGER:
//     +- RootGuardManager
//     | +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0)
//     | | +- TYPE_MATCH: ___check_type_id(L['x'], 129836096)  # return x + 1  # m.py:7 in forward (HINT: type MLP)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tlparse {

// Views into the text that was parsed.
struct GuardLine {
  std::size_t depth = 0;        // number of "| " before it
  std::string_view kind;        // GuardManager, TYPE_MATCH, …
  std::string_view expression;  // the text after the kind, without the comment, with its
                                // continuation lines
  std::string_view source;  // L['x']: of the line itself or the nearest manager above that names
                            // one; "" if there is none
  // The comment; empty where there is none.
  std::string_view user_code;
  std::string_view user_file;  // cut on the left by PyTorch to about 30 characters
  std::optional<std::int64_t> user_line;
  std::string_view user_function;
  std::string_view hint;
};

// Text that is not a tree has no lines. Linear in the size of the text.
std::vector<GuardLine> ParseGuardTree(std::string_view text);

// The comment of one guard, also of a recompile reason: "expression  # code  # file:line in
// function (HINT: …)". Sets expression and the user members of `line`.
void ParseGuardComment(std::string_view text, GuardLine& line);

}  // namespace tlparse
