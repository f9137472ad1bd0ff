// A change to a run that can be made from outside of the program, as data: what a finding suggests,
// and what `tlparse try` makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace tlparse {

enum class ChangeKind : std::uint8_t {
  kVariable,     // an environment variable of all processes
  kNoVariable,   // a variable that is not set
  kOption,       // an option of a module of PyTorch: torch._dynamo.config.recompile_limit
  kMarkDynamic,  // torch._dynamo.mark_dynamic of a local of a function, when it is compiled
  kSharedCache,  // one cache directory for all processes, filled by a run before
  kFullgraph,    // fullgraph=True for a function: a check, no cure
  kBackend,      // a backend in place of the one that torch.compile is given
  kSteps,        // the program is ended after so many steps of its optimizer
};
std::string_view Name(ChangeKind kind);

// Strings may be empty.
struct Change {
  ChangeKind kind = ChangeKind::kVariable;
  // The variable; the option with its module; the local, "x" or "self.bias" or "xs[0]".
  std::string name;
  // Text of the variable; of an option a Python literal or JSON; the dimension; the backend; a number.
  std::string value;
  std::string function, file;  // kMarkDynamic: of which it is a local; kFullgraph
  bool operator==(const Change&) const = default;
};

// What a person reads: "torch._dynamo.config.x = True", "torch._dynamo.mark_dynamic(x, 0)".
std::string TextOf(const Change& change);
std::string TextOf(const std::vector<Change>& changes);

// The change of this kind, or nullptr.
const Change* FindChange(const std::vector<Change>& changes, ChangeKind kind);

// Whether the name is a local of Python with attributes and numbers in brackets, as kMarkDynamic
// takes it.
bool IsLocalPath(std::string_view name);

// The option or variable that a hint of PyTorch sets: "torch._dynamo.config.x = True", "export
// TORCHDYNAMO_X=1". Nothing: it sets none, or not to one value.
std::optional<Change> ChangeInHint(std::string_view hint);

// "inductor_config[max_fusion_size]", as keys and metrics name an option: its module and name,
// "torch._inductor.config.max_fusion_size". Empty: it is none that a module of PyTorch has.
std::string OptionOfConfig(std::string_view name);

// An array of objects (change_fields.h).
void WriteChanges(JsonWriter& json, const std::vector<Change>& changes);

}  // namespace tlparse
