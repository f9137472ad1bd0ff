// Normal forms of texts, for comparing those of several processes: memory addresses, counters and
// paths that do not matter for the compile are removed. Two texts that differ only in those have
// equal normal forms. The stored text is not changed.
//
// Each function returns the normal form as a view: of `text` itself where nothing had to be
// removed, else of `buffer` (its earlier content is lost). The view lives as long as both are
// unchanged. Linear in the text's size, one pass, no allocation beyond the buffer's growth, any
// bytes accepted. Thread-safe for different buffers.
//
// Replaced in every kind: addresses ("0x7f…" of nine to sixteen digits, or after " at ", become
// "0x<addr>"), and the index of a device ("cuda:3", "device(type='cuda', index=3)") by its ordinal
// of first appearance: a rank compiles for its own GPU, so code that names only cuda:3 is equal to
// code that names only cuda:0.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// A printed FX graph. Also: "# graph id: N" and the blank space around it at the end,
// "<eval_with_key>.N", addresses in names ("optimizer_140329873123456_c5").
std::string_view NormalizeGraph(std::string_view text, std::string& buffer);

// Generated code (torch/_inductor/codegen/wrapper.py). Also: the number in "# AOT ID", lines of
// provenance handles, cache paths (…/ab/cab….py), stream numbers, ids of constants, and the benchmark
// at the end (get_args, benchmark_compiled_module).
std::string_view NormalizeCode(std::string_view text, std::string& buffer);

// A guard tree or one expression of it (torch/csrc/dynamo/guards.cpp). Also: decimal object ids as
// in ___check_type_id(…, 129836096), with the padding that depends on their length; addresses in
// names; "Guard latency = …".
std::string_view NormalizeGuards(std::string_view text, std::string& buffer);

// fx_graph_runnable (torch/_dynamo/repro/after_aot.py). Also: environment variables, the rank of
// fake process groups, cache paths, and the order of settings and within printed sets of strings.
std::string_view NormalizeRunnable(std::string_view text, std::string& buffer);

// Any other text. Also: cache paths.
std::string_view NormalizeText(std::string_view text, std::string& buffer);

}  // namespace tlparse
