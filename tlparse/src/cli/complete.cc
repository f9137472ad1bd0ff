// tlparse __complete WORD…: what the last word may become, for the scripts of `tlparse completion`. It never complains: a shell would print that into a line
// that is being typed.
#include "queries/cli/complete.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/described_commands.h"
#include "cli/playbooks.h"

namespace tlparse {
namespace {

using Words = std::span<const std::string>;

class Completion {
 public:
  explicit Completion(const std::string& begun) : begun_(begun) {}
  void Offer(std::string_view value, std::string_view meaning) const {
    if (!value.starts_with(begun_) || value.find_first_of("\t\n") != std::string_view::npos) return;
    std::string line(value);
    if (!meaning.empty()) line += fmt::format("\t{}", meaning);
    std::puts(line.c_str());
  }

 private:
  std::string begun_;
};

// The first word that is a database or an output directory.
std::optional<Database> DatabaseOf(Words words) {
  for (const std::string& word : words) {
    struct stat status {};
    if (word.starts_with('-') || stat(word.c_str(), &status) != 0) continue;
    Result<Database> database = OpenAnswerDatabase(word);
    if (database) return std::move(*database);
  }
  return std::nullopt;
}

// Values of options that are in the database.
Result<void> OfferRows(Words words, const std::string& option, const Completion& completion) {
  std::optional<Database> database = DatabaseOf(words);
  if (!database) return {};
  FOR_EACH_ROW(const ValueOfOption& row, Query<ValueOfOption>(*database, {option})) {
    completion.Offer(row.value, {});
  }
  return {};
}

void OfferKinds(const Completion& completion) {
  for (std::size_t i = 0; i < kFindingKindCount; ++i) {
    const auto kind = static_cast<FindingKind>(i);
    completion.Offer(Name(kind), MeaningOf(kind));
  }
}

// "hits and misses": of a help text what stands before the first mark.
std::string_view Brief(std::string_view text) { return text.substr(0, text.find_first_of(";(:")); }

void OfferValues(Words words, const DescribedOption& option, const Completion& completion) {
  for (const std::string& choice : option.choices) completion.Offer(choice, {});
  const std::string& name = option.names.back();
  if (name == "--kind" || name == "kind") OfferKinds(completion);
  (void)OfferRows(words, name, completion);
}

const DescribedOption* OptionOf(const DescribedCommand& command, const std::string& name) {
  for (const DescribedOption& option : command.arguments.options)
    if (!option.is_positional && std::ranges::find(option.names, name) != option.names.end())
      return &option;
  return nullptr;
}

// `words`: those behind the command's name; the last one is being typed.
void CompleteOf(const DescribedCommand& command, Words words) {
  if (command.name == "run" && std::ranges::find(words, "--") != words.end()) return;
  std::string begun = words.back();
  Words before = words.first(words.size() - 1);
  // bash hands "--rank=3" over as three words.
  if (begun == "=")
    begun.clear();
  else if (!before.empty() && before.back() == "=")
    before = before.first(before.size() - 1);
  const DescribedOption* option = before.empty() ? nullptr : OptionOf(command, before.back());
  if (option != nullptr && !option->value.empty())
    return OfferValues(before, *option, Completion(begun));
  if (begun.starts_with("-")) {
    for (const DescribedOption& one : command.arguments.options)
      if (!one.is_positional)
        for (const std::string& name : one.names) Completion(begun).Offer(name, Brief(one.help));
    return;
  }
  for (const DescribedOption& one : command.arguments.options)
    if (one.is_positional) OfferValues(before, one, Completion(begun));
}

}  // namespace

int RunComplete(std::span<const std::string> arguments) {
  if (arguments.empty()) return kExitDone;
  const std::vector<DescribedCommand> commands = DescribeCommands();
  // The longest name that the words begin with: "fleet time" before "fleet".
  const DescribedCommand* command = &commands.front();
  std::size_t taken = 0;
  for (std::size_t count = 1; count <= 2 && count < arguments.size(); ++count) {
    const std::string name = count == 1 ? arguments[0] : arguments[0] + " " + arguments[1];
    for (const DescribedCommand& one : commands)
      if (one.name == name) command = &one, taken = count;
  }
  const Words words = arguments.subspan(taken);
  if (words.size() == 1 && (taken == 0 || command->name == "fleet")) {
    const std::span<const Command> offered = taken == 0 ? Commands() : FleetCommands();
    for (const Command& one : offered) Completion(words.back()).Offer(one.name, one.summary);
  }
  CompleteOf(*command, words);
  return kExitDone;
}

}  // namespace tlparse
