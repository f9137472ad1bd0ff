#include "cli/mcp/known_answers.h"

#include <sys/stat.h>

#include <chrono>

#include "base/json_writer.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
// A file system may have times of whole seconds, another those of the kernel's clock.
constexpr std::int64_t kTickNs = 50'000'000, kTickOfSecondsNs = 2'000'000'000;

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

void AddOfId(const array& findings, std::string_view id, std::vector<element>& found) {
  for (const element one : findings) {
    std::string_view own;
    if (one["id"].get(own) == simdjson::SUCCESS && own == id) found.push_back(one);
    array evidence;
    if (one["evidence"].get(evidence) == simdjson::SUCCESS) AddOfId(evidence, id, found);
  }
}

}  // namespace

DatabaseState StateOfDatabase(const std::string& path) {
  const std::int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  struct stat status {};
  const bool is_directory = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const std::string file = is_directory ? path + "/trace.db" : path;
  DatabaseState state{{}, true};
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
  return state;
}

const std::string* KnownAnswers::Find(const std::string& path,
                                      const std::vector<std::string>& arguments) const {
  const auto found = answers_.find({path, arguments});
  if (found == answers_.end() || found->second.of_files != StateOfDatabase(path).of_files)
    return nullptr;
  return &found->second.output;
}

void KnownAnswers::Keep(const std::string& path, const DatabaseState& before,
                        const std::vector<std::string>& arguments, const std::string& output) {
  if (!before.is_settled) return;
  if (bytes_ + output.size() > kMostBytes) {
    answers_.clear();
    bytes_ = 0;
  }
  bytes_ += output.size();
  answers_[{path, arguments}] = {before.of_files, output};
}

std::optional<std::string> OnlyFinding(std::string_view findings, std::string_view id) {
  simdjson::dom::parser parser;
  object document;
  array all;
  if (parser.parse(findings.data(), findings.size()).get(document) != simdjson::SUCCESS ||
      document["findings"].get(all) != simdjson::SUCCESS)
    return std::nullopt;
  std::vector<element> found;
  AddOfId(all, id, found);
  if (found.empty()) return std::nullopt;
  JsonWriter json;
  json.BeginObject();
  for (const auto& [name, value] : document) {
    json.Key(name);
    if (name != "findings") {
      json.Raw(simdjson::minify(value));
      continue;
    }
    json.BeginArray();
    for (const element one : found) json.Raw(simdjson::minify(one));
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

}  // namespace tlparse
