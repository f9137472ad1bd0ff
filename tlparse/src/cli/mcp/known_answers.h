// What commands printed about databases that have not changed since.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tlparse {

// What tells whether a database has changed: its file and its journals, when they were written.
struct DatabaseState {
  std::vector<std::int64_t> of_files;
  // Changes of a moment are not told apart: a state that is younger may change unseen.
  bool is_settled = false;
};
// `path`: of the database, or of the directory that it is in.
DatabaseState StateOfDatabase(const std::string& path);

class KnownAnswers {
 public:
  // nullptr: unknown, or the database has changed.
  const std::string* Find(const std::string& path, const std::vector<std::string>& arguments) const;
  // `before`: the state when the command began.
  void Keep(const std::string& path, const DatabaseState& before,
            const std::vector<std::string>& arguments, const std::string& output);

 private:
  struct Answer {
    std::vector<std::int64_t> of_files;
    std::string output;
  };
  std::map<std::pair<std::string, std::vector<std::string>>, Answer> answers_;
  std::size_t bytes_ = 0;  // of all outputs
};

// The document of findings with nothing but the finding of this id, also where it is evidence of
// another. Nothing: there is none.
std::optional<std::string> OnlyFinding(std::string_view findings, std::string_view id);

}  // namespace tlparse
