#include "cli/arguments.h"

#include <cstdio>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/terminal.h"

namespace tlparse {

using Option = Arguments::Option;

Option& Option::Required() {
  option_->required();
  return *this;
}
Option& Option::Between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::Between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::Positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option& Option::OneOf(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}
Option& Option::Times(int least, int most) {
  option_->expected(least, most);
  return *this;
}
Option& Option::OneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}
Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}
bool Option::WasGiven() const { return option_->count() > 0; }

Arguments::Arguments(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name.empty() ? "tlparse" : "tlparse " + name)) {}
Arguments::~Arguments() = default;

void Arguments::Flag(const std::string& names, bool& value, const std::string& help) {
  app_->add_flag(names, value, help);
}

void Arguments::FlagWithText(const std::string& name, std::optional<std::string>& value,
                             const std::string& help) {
  const auto take = [&value](const CLI::results_t& results) {
    value = results.empty() || results.front() == "true" ? "" : results.front();
    return true;
  };
  app_->add_option(name, take, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->expected(0);
}

template <typename T>
Option Arguments::Add(const std::string& names, T& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}
template Option Arguments::Add(const std::string&, std::string&, const std::string&);
template Option Arguments::Add(const std::string&, int&, const std::string&);
template Option Arguments::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<std::int64_t>&,
                               const std::string&);
template Option Arguments::Add(const std::string&, std::optional<double>&, const std::string&);

void Arguments::SetVersion(const std::string& names, const std::string& text) {
  app_->set_version_flag(names, text);
}
void Arguments::SetFooter(const std::string& text) { app_->footer(text); }

std::optional<int> Arguments::Parse(std::span<const std::string> arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return kExitDone;
  } catch (const CLI::CallForHelp&) {
    const std::string help = app_->help();
    std::fwrite(help.data(), 1, help.size(), stdout);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "tlparse: %s; see '%s --help'\n", Printable(error.what()).c_str(),
                 app_->get_name().c_str());
    return kExitUsage;
  }
}

}  // namespace tlparse
