// Guards as answers show them, and in a form that is comparable between processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tlparse {

// Whether a guard names what only PyTorch's generated code has: G['__import_…'],
// G['__builtins_dict___0'], ___check_…(…).
bool HasGeneratedNames(std::string_view guard);

// The name that Python has for a source: "self.layer.weight" of
// L['self']._modules['layer']._parameters['weight'], "x" of L['x'].
std::string ReadableSource(std::string_view source);

struct GuardText {
  std::string guard;  // one line: "type of x: int", "___stack0 == 2 (a value on the stack)"
  // The line of Python that the guard stems from, "if y > 0: (u/m.py:12)", where the guard names
  // what only generated code has; else empty.
  std::string at;
  std::string Whole() const;  // "<guard> at: <at>"
};

// Checks that PyTorch generates are said in words, and generated names as Python has them, where
// that is possible. `code` and `file` may be empty, `line` 0: unknown.
GuardText ReadableGuard(std::string_view guard, std::string_view code, std::string_view file,
                        std::int64_t line);

// A part of a guard with generated names replaced: "torch.compiler" of G['__import_torch'].compiler.
std::string ReadableName(std::string_view name);

// What a guard checks: "x" of "x == 2", "x is None" and "___check_type_id(x, 94), type=…"; empty:
// another guard.
std::string_view GuardSubject(std::string_view guard);

// The guard without what differs between processes, and between versions of PyTorch that write the
// same check differently.
std::string GuardKey(std::string_view guard);

}  // namespace tlparse
