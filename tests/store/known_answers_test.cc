#include "store/known_answers.h"

#include <filesystem>
#include <fstream>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

std::shared_ptr<const std::string> Text(std::size_t size) {
  return std::make_shared<const std::string>(size, 'x');
}

}  // namespace

TEST_CASE("What was asked for longest ago is dropped", "[known_answers]") {
  KnownAnswers known(100);
  const DatabaseState state{{1}, true};
  known.Keep(state, {"a"}, Text(40));
  known.Keep(state, {"b"}, Text(40));
  CHECK(known.Find(state, {"a"}) != nullptr);
  known.Keep(state, {"c"}, Text(60));
  CHECK(known.Find(state, {"b"}) == nullptr);
  CHECK(known.Find(state, {"a"}) != nullptr);
  REQUIRE(known.Find(state, {"c"}) != nullptr);
  CHECK(known.Find(state, {"c"})->size() == 60);
  // Too large to be kept at all: nothing makes room for it.
  known.Keep(state, {"d"}, Text(101));
  CHECK(known.Find(state, {"d"}) == nullptr);
  CHECK(known.Find(state, {"a"}) != nullptr);
  // Another answer to a question takes the place of the first.
  known.Keep(state, {"c"}, Text(10));
  CHECK(known.Find(state, {"c"})->size() == 10);
  known.Keep(state, {"e"}, Text(50));
  CHECK(known.Find(state, {"a"}) != nullptr);
}

TEST_CASE("An answer is of one state, and of none that may change unseen", "[known_answers]") {
  KnownAnswers known;
  known.Keep({{1, 2}, true}, {"a"}, Text(1));
  CHECK(known.Find({{1, 2}, true}, {"a"}) != nullptr);
  CHECK(known.Find({{1, 2}, false}, {"a"}) != nullptr);
  CHECK(known.Find({{1, 3}, true}, {"a"}) == nullptr);
  known.Keep({{1, 3}, false}, {"a"}, Text(1));
  CHECK(known.Find({{1, 3}, true}, {"a"}) == nullptr);
}

TEST_CASE("The state of databases is that of all their files", "[known_answers]") {
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / "known_answers_test";
  fs::remove_all(directory);
  fs::create_directories(directory);
  const std::vector<std::string> both = {directory.string(), (directory / "b.db").string()};
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(directory / name) << text;
    fs::last_write_time(directory / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  write("trace.db", "1");
  write("b.db", "1");
  const DatabaseState first = StateOfDatabases(both);
  CHECK(first.is_settled);
  CHECK(StateOfDatabases(both).of_files == first.of_files);
  write("b.db", "22");
  const DatabaseState second = StateOfDatabases(both);
  CHECK(second.of_files != first.of_files);
  write("trace.db-journal", "");
  CHECK(StateOfDatabases(both).of_files != second.of_files);
  std::ofstream(directory / "trace.db") << "333";
  CHECK_FALSE(StateOfDatabases(both).is_settled);
  fs::remove_all(directory);
}
