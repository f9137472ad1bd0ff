// What PyTorch's messages say about cause and remedy, without the words around it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tlparse {

// The first line that is not empty.
std::string FirstLine(std::string_view text);

// "InductorError", "RuntimeError: x\n\nSet TORCHDYNAMO_VERBOSE=1 …" → "InductorError: RuntimeError:
// x".
std::string CauseOfException(std::string_view type, std::string_view reason);

// What a graph break's or an unsupported construct's message says is the cause: its first line
// without the announcement ("Encountered graph break when attempting to trace …").
std::string CauseOfBreak(std::string_view reason);
// Its first "Hint:" that tells what to do; empty: none.
std::string HintOf(std::string_view reason);
// The page that explains it; empty: none.
std::string LinkOf(std::string_view reason);

// Whether PyTorch says that it skipped the whole function after a break, and runs it eagerly.
bool IsSkippedFunction(std::string_view reason);

// Whether an exception says that a function was recompiled too often.
bool IsRecompileLimit(std::string_view type, std::string_view reason);
// Whether reaching the limit is an error for the caller (fullgraph=True); else the function runs
// eagerly from then on.
bool IsHardRecompileLimit(std::string_view type);

// The parts of a recompile reason: "0/1: n == 1   # return x + n  # s.py:63 in f (HINT: …)".
struct RecompileReason {
  std::string guard;    // "n == 1"
  std::string code;     // "return x + n"
  std::string hint;     // without "HINT:"
  std::string subject;  // what was compared: "n", "size of x at index 0", "dtype of x"
  std::string value;    // the value it had when compiled: "1", "Float"
  std::string actual;   // the value that did not fit, where the message has it
};
RecompileReason ParseRecompileReason(std::string_view guard, std::string_view reason);

// What to try against recompiles for this reason, with the condition under which it helps; empty:
// nothing is known.
std::string AdviceForRecompiles(const RecompileReason& reason);

}  // namespace tlparse
