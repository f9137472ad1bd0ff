// The joins of one profile (see join.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What the logs of a run compiled, indexed for the joins.
class CompiledCode {
 public:
  struct Graph {
    std::int64_t id;
    std::int64_t compile_id;
    std::int64_t process_id;
    std::string direction;
    std::int64_t content_id;  // of its kernels; 0: none
    std::int64_t start_us;    // of its compile; 0: unknown
  };
  struct Compile {
    std::int64_t id;
    std::int64_t start_us;
  };
  struct Kernel {
    std::int64_t id;
    std::string name;
  };

  static Result<CompiledCode> Load(Database& database, std::int64_t run_id);

  // Graphs of a cache key, in order of their compiles.
  const std::vector<const Graph*>* WithKey(const std::string& key) const;
  // Compiles of one label of a process, oldest first.
  const std::vector<Compile>* WithLabel(std::int64_t process_id, const std::string& label) const;
  // The graphs of one direction (backward or not) of a compile.
  struct OfDirection {
    const Graph* first = nullptr;  // nullptr: none
    bool has_several = false;
  };
  OfDirection GraphOf(std::int64_t compile_id, bool is_backward) const;
  // The kernels that a graph's code calls, in order; those with a provenance handle, if any has
  // one.
  Result<const std::vector<Kernel>*> KernelsOf(Database& database, const Graph& graph);
  // The names by which a graph's code calls the Triton kernels, by the base names of the files that
  // the code gives for their sources.
  using KernelFiles = std::unordered_map<std::string, std::string>;
  Result<const KernelFiles*> KernelFilesOf(Database& database, const Graph& graph);

 private:
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::unordered_map<std::string, std::vector<const Graph*>> by_key_;
  std::unordered_map<std::string, std::vector<Compile>> by_label_;           // "<process>/<label>"
  std::unordered_map<std::int64_t, std::array<OfDirection, 2>> by_compile_;  // forward, backward
  std::unordered_map<std::int64_t, std::vector<Kernel>> kernels_;            // by content
  std::unordered_map<std::int64_t, KernelFiles> kernel_files_;               // by graph
};

// Makes the link rows of one profile, which has none. `process_id`: the process it measured.
Result<void> JoinProfile(Database& database, CompiledCode& code, std::int64_t profile_id,
                         std::optional<std::int64_t> process_id);

// Where temporary files of its joins are made.
std::string DirectoryOf(const Database& database);

// Id of a text in text_row, added if it is not there.
Result<std::int64_t> NoteId(Database& database, std::string_view text);

}  // namespace tlparse
