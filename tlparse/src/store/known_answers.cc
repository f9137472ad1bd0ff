#include "store/known_answers.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

namespace tlparse {
namespace {

// A file system may have times of whole seconds, another those of the kernel's clock.
constexpr std::int64_t kTickNs = 50'000'000, kTickOfSecondsNs = 2'000'000'000;

void AddStateOf(const std::string& path, std::int64_t now_ns, DatabaseState& state) {
  struct stat status {};
  const bool is_directory = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const std::string file = is_directory ? path + "/trace.db" : path;
  for (const char* const ending : {"", "-wal", "-journal"}) {
    if (stat((file + ending).c_str(), &status) != 0) {
      state.of_files.push_back(-1);
      continue;
    }
    const std::int64_t written_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    const std::int64_t tick_ns = status.st_mtim.tv_nsec == 0 ? kTickOfSecondsNs : kTickNs;
    state.is_settled &= written_ns + tick_ns < now_ns;
    for (const auto part :
         {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
          static_cast<std::int64_t>(status.st_size), written_ns})
      state.of_files.push_back(part);
  }
}

}  // namespace

DatabaseState StateOfDatabases(std::span<const std::string> paths) {
  const std::int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  DatabaseState state;
  for (const std::string& path : paths) AddStateOf(path, now_ns, state);
  return state;
}

std::shared_ptr<const std::string> KnownAnswers::Find(const DatabaseState& state,
                                                      const Question& question) {
  const std::lock_guard lock(mutex_);
  const auto found = of_question_.find(question);
  if (found == of_question_.end()) return nullptr;
  if (found->second->of_files != state.of_files) {
    Drop(found->second);
    return nullptr;
  }
  answers_.splice(answers_.begin(), answers_, found->second);
  return answers_.front().text;
}

void KnownAnswers::Keep(const DatabaseState& before, const Question& question,
                        std::shared_ptr<const std::string> answer) {
  if (!before.is_settled || answer->size() > most_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (const auto found = of_question_.find(question); found != of_question_.end())
    Drop(found->second);
  while (bytes_ + answer->size() > most_bytes_) Drop(std::prev(answers_.end()));
  bytes_ += answer->size();
  answers_.push_front({question, before.of_files, std::move(answer)});
  of_question_[question] = answers_.begin();
}

void KnownAnswers::Drop(Answers::iterator answer) {
  bytes_ -= answer->text->size();
  of_question_.erase(answer->question);
  answers_.erase(answer);
}

}  // namespace tlparse
