// The options and arguments of a command. Only arguments.cc includes CLI11, which adds ten seconds
// to the compilation of every file that includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tlparse {

// An option or argument, as --help shows it.
struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional argument its name alone
  std::string value;               // what follows it, like "TEXT"; empty: a flag
  std::vector<std::string> choices;
  std::string help;
  bool is_positional = false;
};

struct DescribedArguments {
  std::string name;  // "tlparse findings"
  std::string description;
  std::vector<DescribedOption> options;
};

// What a command takes: `run` calls the command, whose Arguments describe themselves instead of parsing anything.
DescribedArguments DescribeArguments(const std::function<void()>& run);

// Names are written like "-o,--output"; without a dash the argument is positional. Values are set
// by Parse, so they must live until then.
class Arguments {
 public:
  class Option {
   public:
    Option& Required();
    Option& Between(int least, int most);
    Option& Between(double least, double most);
    Option& Positive();
    Option& OneOf(std::vector<std::string> values);
    // A positional argument that may be repeated up to this number of times.
    Option& Times(int least, int most);
    // For a list: the option takes one value each time it is given.
    Option& OneValueEach();
    // The current value is shown as the default.
    Option& ShowDefault();
    bool WasGiven() const;

   private:
    friend class Arguments;
    Option(CLI::Option* option, Arguments* owner) : option_(option), owner_(owner) {}
    CLI::Option* option_;
    Arguments* owner_;
  };

  // `name` of the subcommand, "" for the program itself.
  explicit Arguments(const std::string& description, const std::string& name = "");
  ~Arguments();
  Arguments(const Arguments&) = delete;  // options refer to it
  Arguments& operator=(const Arguments&) = delete;

  void Flag(const std::string& names, bool& value, const std::string& help);
  // "--name" gives an empty text, "--name=TEXT" that text: what follows is another argument.
  void FlagWithText(const std::string& name, std::optional<std::string>& value,
                    const std::string& help);
  // T: std::string, int, a list of std::string; optional std::string, std::int64_t, double.
  template <typename T>
  Option Add(const std::string& names, T& value, const std::string& help);
  void SetFooter(const std::string& text);

  // Nothing: continue. A code: exit with it (help, the version or one line of error was printed).
  std::optional<int> Parse(std::span<const std::string> arguments);

 private:
  DescribedArguments Describe() const;
  // The option of which a mistyped one may be meant; empty: none is near.
  std::string Suggestion(const std::string& mistyped) const;

  std::unique_ptr<CLI::App> app_;
  std::map<const CLI::Option*, std::vector<std::string>> choices_;
};

// Parses what stands before "--"; what follows is the command, which is left alone without it.
std::optional<int> ParseWithCommand(Arguments& app, std::span<const std::string> arguments,
                                    std::vector<std::string>& command);

}  // namespace tlparse
