// Answers about databases that have not changed since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tlparse {

// What tells whether databases have changed: their files and journals, when they were written.
struct DatabaseState {
  std::vector<std::int64_t> of_files;
  // Changes of a moment are not told apart: a state that is younger may change unseen.
  bool is_settled = true;
};
// `paths`: of the databases, or of the directories that they are in.
DatabaseState StateOfDatabases(std::span<const std::string> paths);

// Thread-safe. Of more than `most_bytes` what was asked for longest ago is dropped.
class KnownAnswers {
 public:
  using Question = std::vector<std::string>;

  explicit KnownAnswers(std::size_t most_bytes = std::size_t{64} << 20) : most_bytes_(most_bytes) {}
  // nullptr: unknown, or of another state.
  std::shared_ptr<const std::string> Find(const DatabaseState& state, const Question& question);
  // `before`: the state when the answer was begun.
  void Keep(const DatabaseState& before, const Question& question,
            std::shared_ptr<const std::string> answer);

 private:
  struct Answer {
    Question question;
    std::vector<std::int64_t> of_files;
    std::shared_ptr<const std::string> text;
  };
  using Answers = std::list<Answer>;
  void Drop(Answers::iterator answer);

  const std::size_t most_bytes_;
  std::mutex mutex_;  // guards all below
  Answers answers_;   // the one that was asked for last is the first
  std::map<Question, Answers::iterator> of_question_;
  std::size_t bytes_ = 0;  // of all answers
};

}  // namespace tlparse
