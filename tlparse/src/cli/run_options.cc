#include "cli/run_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace tlparse {

namespace {

// Nobody is harmed by stacks that are taken too early; a command that is ended is.
constexpr std::int64_t kHangForKill = 300;

// "%h" is the name of the host, so that hosts may share a directory.
std::string WithHost(std::string path) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  for (std::size_t at = path.find("%h"); at != std::string::npos; at = path.find("%h", at))
    path.replace(at, 2, host);
  return path;
}

// "", "3-5", "steps 3-5", "10s" or "on-demand", as the hook reads it.
Result<std::string> ProfileOf(std::string text) {
  if (text.empty()) text = "3-5";
  if (text == "on-demand") return "demand 10";
  if (text.starts_with("steps ")) text.erase(0, 6);
  int first = 0, last = 0, seconds = 0, end = 0;
  const auto is_whole = [&] { return end == static_cast<int>(text.size()) && end > 0; };
  if (std::sscanf(text.c_str(), "%d-%d%n", &first, &last, &end) == 2 && is_whole() && first >= 2 &&
      last >= first)
    return fmt::format("steps {} {}", first, last);
  end = 0;
  if (std::sscanf(text.c_str(), "%ds%n", &seconds, &end) == 1 && is_whole() && seconds > 0)
    return fmt::format("seconds {}", seconds);
  return Fail(ErrorCode::kUsage,
              fmt::format("run: --profile={}: give steps, as in 3-5 (the first can be 2), "
                          "seconds, as in 10s, or on-demand",
                          text));
}

// Of the calls of a graph each so many: --numbers=N.
Result<std::string> EveryOf(const std::string& text) {
  const bool is_number =
      text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
  if (text.empty()) return std::string("1");
  if (is_number && text.find_first_not_of('0') != std::string::npos) return text;
  return Fail(
      ErrorCode::kUsage,
      fmt::format("run: --numbers={}: give a number, as in --numbers=10 for each tenth call",
                  text));
}

// What --profile and --numbers gave; nothing: they were not given.
struct HookWords {
  std::optional<std::string> profile, numbers;
};

void AddHookOptions(Arguments& app, HookWords& words, RunOptions& options) {
  app.FlagWithText("--profile", words.profile,
                   "also profile each process with torch.profiler: steps 3 to 5 of its first "
                   "optimizer, --profile=A-B other steps, --profile=10s that long from its second "
                   "step on, --profile=on-demand 10 s whenever tlparse run gets SIGPROF");
  app.Flag(
      "--memory", options.requests.memory,
      "also record what the allocator of CUDA does in each process: a snapshot is written after "
      "a step with a new peak, when an allocation fails, and at the end of the process; with "
      "--profile also what the profiled steps allocate, on the CPU too");
  app.FlagWithText(
      "--numbers", words.numbers,
      "also hash what each call of a compiled graph gives, with its norm and counts of NaN and "
      "infinity (--numbers=N: each Nth call); it reads every output and waits for the device");
}

Result<void> TakeRequests(const HookWords& words, RunOptions& options) {
  const auto& [profile, numbers] = words;
  const bool needs_hook = profile || numbers || options.requests.memory;
  if (needs_hook && options.no_hook)
    return Fail(ErrorCode::kUsage, fmt::format("run: {} needs the hook that --no-hook leaves out",
                                               profile   ? "--profile"
                                               : numbers ? "--numbers"
                                                         : "--memory"));
  if (profile) {
    ASSIGN_OR_RETURN(options.requests.profile, ProfileOf(*profile));
  }
  if (numbers) {
    ASSIGN_OR_RETURN(options.requests.numbers, EveryOf(*numbers));
  }
  return {};
}

OnHang OnHangOf(const std::string& word) {
  return word == "kill" ? OnHang::kKill : word == "none" ? OnHang::kNone : OnHang::kDump;
}

}  // namespace

std::string FreeDirectory(const std::string& name) {
  std::string path = name;
  for (int number = 2; access(path.c_str(), F_OK) == 0; ++number)
    path = fmt::format("{}_{}", name, number);
  return path;
}

std::optional<int> ParseRunOptions(std::span<const std::string> arguments, RunOptions& options) {
  Arguments app(
      "Start a command with everything recorded: the structured trace, dumps of the flight "
      "recorder, Python stacks. Follow it, and print the findings when it hangs and when it has "
      "ended. Its input and output are not touched, signals are passed on to it, and its exit code "
      "is returned (128 + n if signal n ended it). What the environment sets already stays.",
      "run");
  std::optional<std::string> output;
  std::optional<std::int64_t> hang_after_s;
  std::string on_hang = "dump";
  app.Add("-o,--output", output,
          "output directory; %h is the host's name (default: tl_run, or the first of tl_run_2, … "
          "that is free)");
  app.Flag("--overwrite", options.overwrite,
           "replace the output directory, if an earlier tlparse wrote it");
  app.Flag("-q,--quiet", options.quiet, "print nothing of our own but errors");
  app.Add("--on-hang", on_hang,
          "when the command hangs: dump takes Python stacks and dumps of the flight recorder, kill "
          "does the same and then ends the command (SIGTERM, after 10 s SIGKILL)")
      .OneOf({"dump", "kill", "none"})
      .ShowDefault();
  app.Add("--hang-after", hang_after_s,
          fmt::format("seconds without CPU time of any of its processes after which a command "
                      "counts as hanging; so does one with a finding `stuck` (default: {}, with "
                      "--on-hang kill {})",
                      kHangForDump, kHangForKill))
      .Positive();
  app.Add("--world-size", options.world_size,
          "expected number of ranks (default: as many as the inputs show)")
      .Positive();
  app.Flag("--no-hook", options.no_hook,
           "leave PYTHONPATH alone: no Python stacks, and dumps of NCCL's recorder alone");
  HookWords words;
  AddHookOptions(app, words, options);
  app.SetFooter(
      "The command follows --, as in: tlparse run -- torchrun --nproc-per-node 8 train.py");
  if (const std::optional<int> code = ParseWithCommand(app, arguments, options.command))
    return *code;
  if (options.command.empty())
    return ReportError({ErrorCode::kUsage,
                        "run: give the command behind --, as in 'tlparse run -- python train.py'"});
  if (Result<void> taken = TakeRequests(words, options); !taken) return ReportError(taken.error());
  options.output = output ? WithHost(*output) : FreeDirectory("tl_run");
  options.on_hang = OnHangOf(on_hang);
  options.hang_after_s =
      hang_after_s.value_or(options.on_hang == OnHang::kKill ? kHangForKill : kHangForDump);
  return std::nullopt;
}

}  // namespace tlparse
