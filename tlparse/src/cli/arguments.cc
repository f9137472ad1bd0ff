#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/nearest.h"
#include "cli/terminal.h"

namespace tlparse {

using Option = Arguments::Option;

namespace {

// Where Parse writes what it was asked to describe; nullptr: it parses.
DescribedArguments* describe_into = nullptr;

}  // namespace

DescribedArguments DescribeArguments(const std::function<void()>& run) {
  DescribedArguments described;
  describe_into = &described;
  run();
  describe_into = nullptr;
  return described;
}

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
  owner_->choices_[option_] = values;
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
  return Option(app_->add_option(names, value, help), this);
}
template Option Arguments::Add(const std::string&, std::string&, const std::string&);
template Option Arguments::Add(const std::string&, int&, const std::string&);
template Option Arguments::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<std::int64_t>&,
                               const std::string&);
template Option Arguments::Add(const std::string&, std::optional<double>&, const std::string&);

void Arguments::SetFooter(const std::string& text) { app_->footer(text); }

DescribedArguments Arguments::Describe() const {
  DescribedArguments described{app_->get_name(), app_->get_description(), {}};
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    DescribedOption& one = described.options.emplace_back();
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    one.is_positional = one.names.empty();
    if (one.is_positional) one.names.push_back(option->get_name());
    if (option->get_items_expected_max() > 0 && option->get_type_size_max() > 0)
      one.value = option->get_type_name();
    one.value = one.value.substr(0, one.value.find(':'));
    if (const auto found = choices_.find(option); found != choices_.end())
      one.choices = found->second;
    one.help = option->get_description();
  }
  return described;
}

std::string Arguments::Suggestion(const std::string& mistyped) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string nearest = Nearest(mistyped.substr(0, mistyped.find('=')), names);
  return nearest.empty() ? nearest : fmt::format("; did you mean '{}'?", nearest);
}

std::optional<int> Arguments::Parse(std::span<const std::string> arguments) {
  if (describe_into != nullptr) {
    *describe_into = Describe();
    return kExitDone;
  }
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    const std::string help = app_->help();
    std::fwrite(help.data(), 1, help.size(), stdout);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    std::string suggestion;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      for (const std::string& extra : app_->remaining())
        if (suggestion.empty() && extra.starts_with("--")) suggestion = Suggestion(extra);
    std::fprintf(stderr, "tlparse: %s%s; see '%s --help'\n", Printable(error.what()).c_str(),
                 suggestion.c_str(), app_->get_name().c_str());
    return kExitUsage;
  }
}

std::optional<int> ParseWithCommand(Arguments& app, std::span<const std::string> arguments,
                                    std::vector<std::string>& command) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  const auto count = static_cast<std::size_t>(separator - arguments.begin());
  const std::optional<int> code = app.Parse(arguments.first(count));
  if (!code && separator != arguments.end()) command.assign(separator + 1, arguments.end());
  return code;
}

}  // namespace tlparse
