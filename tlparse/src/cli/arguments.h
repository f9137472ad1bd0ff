// What a command takes on its command line. Only arguments.cc sees CLI11, which takes ten seconds
// to compile wherever it is included.
#pragma once

#include <cstdint>
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
    // A positional argument that may be repeated, so often.
    Option& Times(int least, int most);
    // Of a list: each mention takes one value, what follows it is another argument.
    Option& OneValueEach();
    // The value of now is shown as the default.
    Option& ShowDefault();
    bool WasGiven() const;

   private:
    friend class Arguments;
    explicit Option(CLI::Option* option) : option_(option) {}
    CLI::Option* option_;
  };

  // `name` of the subcommand, "" for the program itself.
  explicit Arguments(const std::string& description, const std::string& name = "");
  ~Arguments();
  Arguments(const Arguments&) = delete;  // options refer to it
  Arguments& operator=(const Arguments&) = delete;

  void Flag(const std::string& names, bool& value, const std::string& help);
  // T: std::string, int, a list of std::string; optional std::string, std::int64_t, double.
  template <typename T>
  Option Add(const std::string& names, T& value, const std::string& help);
  void SetVersion(const std::string& names, const std::string& text);
  void SetFooter(const std::string& text);

  // Nothing: go on. A code: exit with it (help or the version was printed, or one line of error).
  std::optional<int> Parse(std::span<const std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tlparse
