// Extracts cause and remedy from PyTorch's messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/compiles/change.h"
#include "facts/compiles/changed_sizes.h"

namespace tlparse {

// The cause in the message of a graph break or an unsupported construct: its first line without the
// introduction ("Encountered graph break when attempting to trace …").
std::string CauseOfBreak(std::string_view reason);
// Its first "Hint:" that is an instruction; empty: none. `has_run`: the function has run before, so
// that a hint that it may fail without a compiler is none.
std::string HintOf(std::string_view reason, bool has_run = false);
// The first of them that sets an option or an environment variable; empty: none.
std::string OptionHintOf(std::string_view reason);
// The explanation in the message; empty: none.
std::string ExplanationOf(std::string_view reason);
// What to try against a bypass of the cache for this reason; empty: nothing is known.
std::string AdviceForBypass(std::string_view reason);
// The page that explains it; empty: none.
std::string LinkOf(std::string_view reason);

// Whether PyTorch says that it skipped the whole function after a break, and runs it eagerly.
bool IsSkippedFunction(std::string_view reason);

// The parts of a recompile reason: "0/1: n == 1   # return x + n  # s.py:63 in f (HINT: …)".
struct RecompileReason {
  std::string guard;             // "n == 1"
  std::string text;              // the guard as it is shown, with its line (ReadableGuard)
  std::string at;                // that line alone; empty: the guard says enough
  std::string code;              // "return x + n"
  std::string hint;              // without "HINT:"
  std::string unbacked_hint;     // what the reason says against a specialization of the framework
  std::string subject;           // what was compared: "n", "size of x at index 0", "dtype of x"
  std::string value;             // the value it had when compiled: "1", "Float"
  std::string actual;            // the value that failed the guard, if in the message
  bool is_of_parameter = false;  // the size of one: another module ran the code
};
// `file`, `line`: where the guard came from; empty, 0: unknown. A reason may name several origins; the code is
// that of the origin in this line, empty if the reason has none for it.
RecompileReason ParseRecompileReason(std::string_view guard, std::string_view reason,
                                     std::string_view file, std::int64_t line);

// The path of a guard's origin, which PyTorch may have cut at the left by a number of characters:
// `whole` where it is the same file, else "…/" and the directories that are whole.
std::string WholePath(std::string_view path, std::string_view whole);

// Whether a size of 0 or 1 is part of it: these are compiled apart, marked as dynamic or not.
bool IsOfSizeZeroOrOne(const RecompileReason& reason);
// What to try, and what of it can be done from outside of the program.
struct Advice {
  std::string text = {};  // empty: nothing is known
  std::vector<Change> changes = {};
  bool is_of_local = false;  // the text names a variable of the function
  std::string remark = {};   // a sentence that explains why there is nothing to try
};
// PyTorch's own next line.
Advice AdviceOfHint(const std::string& hint);
// Against so many recompiles for this reason, with the condition under which it helps. `sizes`: those
// that changed with the size of the reason. The change of a size names no function.
Advice AdviceForRecompiles(const RecompileReason& reason, std::size_t times,
                           const std::vector<ChangedSize>& sizes = {});
// Against recompiles for "size 0 of x" where each size is to be compiled for itself.
Advice AdviceForFixedSize(std::string_view subject);

}  // namespace tlparse
