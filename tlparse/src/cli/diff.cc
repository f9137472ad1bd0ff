// tlparse diff A B: what changed between two runs, or two ranks.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/diff/diff_runs.h"
#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/diff_digests.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

std::string Microseconds(const std::optional<std::int64_t>& us) {
  return us ? HumanDuration(static_cast<double>(*us) / 1e6) : "–";
}

std::string Change(const PhaseChange& phase) {
  if (!phase.a_us || !phase.b_us || *phase.a_us == 0) return "";
  return fmt::format("{:+.0f} %", 100.0 * static_cast<double>(*phase.b_us - *phase.a_us) /
                                      static_cast<double>(*phase.a_us));
}

void PrintTexts(const char* heading, const std::vector<std::string>& texts, std::size_t most) {
  if (texts.empty()) return;
  for (std::size_t i = 0; i < texts.size() && i < most; ++i)
    PrintWrapped(fmt::format("{}: {}", heading, Shorten(texts[i], 240)), 4, 6);
  if (texts.size() > most)
    PrintWrapped(fmt::format("{}: and {} more (--all)", heading, texts.size() - most), 4, 6);
}

void PrintCache(const CacheChange& cache) {
  PrintWrapped(
      fmt::format("{}: {} → {}{}", cache.title, cache.a_state.empty() ? "no lookup" : cache.a_state,
                  cache.b_state.empty() ? "no lookup" : cache.b_state,
                  cache.has_same_key ? ", the same key: storage state" : ""),
      4, 6);
  for (const Cause& cause : cache.causes) {
    PrintWrapped(fmt::format("{}: {}{}", Title(cause.kind), cause.text,
                             cause.explained.empty()
                                 ? ""
                                 : fmt::format("; explains {}",
                                               Count(cause.explained.size(), "more component"))),
                 6, 8);
  }
  if (!cache.fallback.empty()) PrintWrapped(cache.fallback, 6, 8);
}

void PrintCompile(const CompileChange& change, bool all) {
  const std::size_t most = all ? 100000 : 3;
  std::string title = change.a_label == change.b_label
                          ? change.b_label
                          : fmt::format("{} → {}", change.a_label, change.b_label);
  PrintWrapped(fmt::format("{} {}", title, change.function), 0, 2);
  if (change.a_status != change.b_status)
    PrintWrapped(fmt::format("status: {} → {}", change.a_status, change.b_status), 4, 6);
  if (!change.has_same_graph)
    PrintWrapped(
        "graph differs" + (change.graph_difference.empty() ? "" : ": " + change.graph_difference),
        4, 6);
  PrintTexts("new recompile", change.new_recompiles, most);
  PrintTexts("recompile gone", change.vanished_recompiles, most);
  PrintTexts("new graph break", change.new_graph_breaks, most);
  PrintTexts("graph break gone", change.vanished_graph_breaks, most);
  for (const CacheChange& cache : change.caches) PrintCache(cache);
  PrintTexts("new guard", change.new_guards, most);
  PrintTexts("guard gone", change.vanished_guards, most);
  PrintTexts("new kernel", change.new_kernels, most);
  PrintTexts("kernel gone", change.vanished_kernels, most);
  for (const CodeChange& code : change.codes) {
    PrintWrapped(
        fmt::format("generated code differs{}", code.title.empty() ? "" : ": " + code.title), 4, 6);
    if (code.diff.empty()) continue;
    const std::string text = Printable(code.diff, true);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

// Less than a tenth is noise as often as not.
bool IsSlower(const MeasuredChange& change) { return change.b_us > change.a_us * 1.1; }

void PrintMeasured(const MeasuredDifference& measured, bool all) {
  using Align = Table::Align;
  const std::string mean = measured.is_per_step ? "per step" : "per call";
  Table table({{"slower"},
               {"a " + mean, Align::kRight},
               {"b " + mean, Align::kRight},
               {"change", Align::kRight},
               {"of"},
               {"code"}});
  constexpr std::size_t kMost = 10;
  std::size_t count = 0, left_out = 0;
  for (const MeasuredChange& change : measured.changes) {
    if (!IsSlower(change)) continue;
    if (!all && ++count > kMost) {
      ++left_out;
      continue;
    }
    table.Add({change.is_kernel ? "kernel" : "line", HumanDuration(change.a_us / 1e6),
               HumanDuration(change.b_us / 1e6),
               change.a_us > 0 ? fmt::format("{:+.0f} %", 100 * (change.b_us / change.a_us - 1))
                               : std::string(),
               change.is_kernel
                   ? fmt::format("{} in {} {}", change.name, change.label, change.direction)
                   : fmt::format("{}:{}", change.file, change.line),
               !change.is_kernel       ? change.name
               : change.has_other_code ? "the generated code of its graph differs (--code)"
                                       : "the same generated code"});
  }
  std::fputc('\n', stdout);
  if (table.empty()) {
    std::puts("measured: no line or kernel of both sides takes more than a tenth longer");
    return;
  }
  table.Print();
  if (left_out > 0) PrintWrapped(fmt::format("and {} more (--all)", left_out), 2, 4);
}

// PyTorch 2.6 does not log its version.
void PrintVersions(std::string_view what, const std::string& a, const std::string& b) {
  if (a == b) return;
  const auto text = [](const std::string& version) {
    return version.empty() ? std::string("(not in the log)") : Shorten(version, 40);
  };
  PrintWrapped(fmt::format("{} {} → {}", what, text(a), text(b)), 0, 2);
}

void Print(const DiffAnswer& answer, bool all) {
  PrintHeading(fmt::format("a: {}", answer.a_title));
  PrintHeading(fmt::format("b: {}", answer.b_title));
  PrintVersions("torch", answer.a_torch_version, answer.b_torch_version);
  PrintVersions("Python", answer.a_python_version, answer.b_python_version);
  using Align = Table::Align;
  Table table({{"phase"}, {"a", Align::kRight}, {"b", Align::kRight}, {"change", Align::kRight}});
  for (const PhaseChange& phase : answer.phases)
    table.Add({phase.phase, Microseconds(phase.a_us), Microseconds(phase.b_us), Change(phase)});
  table.Print();
  std::size_t equal = 0;
  for (const CompileChange& change : answer.compiles) {
    if (change.IsEqual()) {
      ++equal;
    } else {
      PrintCompile(change, all);
    }
  }
  for (const bool is_b : {false, true}) {
    for (const UnmatchedCompile& compile : is_b ? answer.only_b : answer.only_a) {
      const std::string time = compile.duration_us == 0
                                   ? "time unknown"
                                   : HumanDuration(static_cast<double>(compile.duration_us) / 1e6);
      PrintWrapped(fmt::format("only in {}: {} {} ({}, {})", is_b ? "b" : "a", compile.label,
                               compile.function, compile.status, time),
                   0, 2);
      PrintTexts("recompiled because", compile.recompile_reasons, 3);
    }
  }
  if (equal > 0) PrintWrapped(fmt::format("{} equal but for times", Count(equal, "compile")), 0, 2);
  if (answer.measured) PrintMeasured(*answer.measured, all);
}

void WriteTexts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.Key(key);
  WriteStrings(json, texts);
}

void WritePhases(JsonWriter& json, const std::vector<PhaseChange>& phases) {
  json.Key("phases").BeginArray();
  for (const PhaseChange& phase : phases) {
    json.BeginObject()
        .Key("phase")
        .String(phase.phase)
        .Key("a_us")
        .OptionalInt(phase.a_us)
        .Key("b_us")
        .OptionalInt(phase.b_us)
        .EndObject();
  }
  json.EndArray();
}

void WriteCompile(JsonWriter& json, const CompileChange& change) {
  json.BeginObject()
      .Key("a_label")
      .String(change.a_label)
      .Key("b_label")
      .String(change.b_label)
      .Key("function")
      .String(change.function);
  json.Key("a_status")
      .String(change.a_status)
      .Key("b_status")
      .String(change.b_status)
      .Key("is_equal")
      .Bool(change.IsEqual());
  json.Key("has_same_graph")
      .Bool(change.has_same_graph)
      .Key("graph_difference")
      .OptionalString(NonEmpty(change.graph_difference));
  WritePhases(json, change.phases);
  WriteTexts(json, "new_recompiles", change.new_recompiles);
  WriteTexts(json, "vanished_recompiles", change.vanished_recompiles);
  WriteTexts(json, "new_graph_breaks", change.new_graph_breaks);
  WriteTexts(json, "vanished_graph_breaks", change.vanished_graph_breaks);
  WriteTexts(json, "new_guards", change.new_guards);
  WriteTexts(json, "vanished_guards", change.vanished_guards);
  WriteTexts(json, "new_kernels", change.new_kernels);
  WriteTexts(json, "vanished_kernels", change.vanished_kernels);
  json.Key("caches").BeginArray();
  for (const CacheChange& cache : change.caches) {
    json.BeginObject()
        .Key("lookup")
        .String(cache.title)
        .Key("a_state")
        .OptionalString(NonEmpty(cache.a_state));
    json.Key("b_state")
        .OptionalString(NonEmpty(cache.b_state))
        .Key("has_same_key")
        .Bool(cache.has_same_key);
    json.Key("fallback").OptionalString(NonEmpty(cache.fallback)).Key("causes").BeginArray();
    for (const Cause& cause : cache.causes) {
      json.BeginObject();
      WriteCause(json, cause);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("codes").BeginArray();
  for (const CodeChange& code : change.codes) {
    json.BeginObject()
        .Key("graph")
        .String(code.title)
        .Key("diff")
        .OptionalString(NonEmpty(code.diff))
        .EndObject();
  }
  json.EndArray().EndObject();
}

void WriteMeasured(JsonWriter& json, const std::optional<MeasuredDifference>& measured) {
  json.Key("measured");
  if (!measured) {
    json.Null();
    return;
  }
  json.BeginObject().Key("unit").String(measured->is_per_step ? "step" : "call");
  json.Key("changes").BeginArray();
  for (const MeasuredChange& change : measured->changes) {
    json.BeginObject().Key("kind").String(change.is_kernel ? "kernel" : "line");
    json.Key("name").OptionalString(NonEmpty(change.name));
    json.Key("file").OptionalString(NonEmpty(change.file));
    json.Key("line").OptionalInt(change.is_kernel ? std::nullopt : std::optional(change.line));
    json.Key("label").OptionalString(NonEmpty(change.label));
    json.Key("direction").OptionalString(NonEmpty(change.direction));
    json.Key("a_us").Real(change.a_us).Key("b_us").Real(change.b_us);
    json.Key("a_calls").Int(change.a_calls).Key("b_calls").Int(change.b_calls);
    json.Key("has_other_code").Bool(change.has_other_code).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteComparison(JsonWriter& json, const RankComparison& one) {
  const DiffAnswer& answer = one.diff;
  json.BeginObject().Key("pair_count").Int(static_cast<std::int64_t>(one.count));
  json.Key("a_ranks")
      .String(one.a_ranks)
      .Key("b_ranks")
      .String(one.b_ranks)
      .Key("a_rank")
      .String(answer.a_rank)
      .Key("b_rank")
      .String(answer.b_rank);
  json.Key("a")
      .String(answer.a_title)
      .Key("b")
      .String(answer.b_title)
      .Key("is_equal")
      .Bool(answer.IsEqual());
  json.Key("a_torch_version")
      .OptionalString(NonEmpty(answer.a_torch_version))
      .Key("b_torch_version")
      .OptionalString(NonEmpty(answer.b_torch_version));
  json.Key("a_python_version")
      .OptionalString(NonEmpty(answer.a_python_version))
      .Key("b_python_version")
      .OptionalString(NonEmpty(answer.b_python_version));
  WritePhases(json, answer.phases);
  json.Key("compiles").BeginArray();
  for (const CompileChange& change : answer.compiles) WriteCompile(json, change);
  json.EndArray();
  for (const bool is_b : {false, true}) {
    json.Key(is_b ? "only_b" : "only_a").BeginArray();
    for (const UnmatchedCompile& compile : is_b ? answer.only_b : answer.only_a) {
      json.BeginObject()
          .Key("label")
          .String(compile.label)
          .Key("function")
          .String(compile.function)
          .Key("status")
          .String(compile.status);
      json.Key("duration_us")
          .OptionalInt(compile.duration_us == 0 ? std::nullopt
                                                : std::optional(compile.duration_us));
      WriteTexts(json, "recompile_reasons", compile.recompile_reasons);
      json.EndObject();
    }
    json.EndArray();
  }
  WriteMeasured(json, answer.measured);
  json.EndObject();
}

JsonWriter ToJson(const RunComparison& answer) {
  JsonWriter json;
  json.BeginObject().Key("is_equal").Bool(answer.IsEqual()).Key("comparisons").BeginArray();
  for (const RankComparison& one : answer.comparisons) WriteComparison(json, one);
  json.EndArray().Key("left_out").Int(static_cast<std::int64_t>(answer.left_out));
  json.Key("only_a_ranks")
      .OptionalString(NonEmpty(answer.only_a_ranks))
      .Key("only_b_ranks")
      .OptionalString(NonEmpty(answer.only_b_ranks));
  WriteDigests(json, answer.digests);
  json.EndObject();
  return json;
}

void PrintAll(const RunComparison& answer, bool all) {
  for (std::size_t i = 0; i < answer.comparisons.size(); ++i) {
    const RankComparison& one = answer.comparisons[i];
    if (i > 0) std::fputc('\n', stdout);
    if (one.count > 1) {
      const std::string ranks = one.a_ranks == one.b_ranks
                                    ? one.a_ranks
                                    : fmt::format("{} of a and {} of b", one.a_ranks, one.b_ranks);
      PrintHeading(
          fmt::format("ranks {}: alike on each side; compared: {}{}", ranks, one.diff.a_rank,
                      one.diff.a_rank == one.diff.b_rank ? "" : " and " + one.diff.b_rank));
    }
    Print(one.diff, all);
  }
  if (answer.left_out > 0)
    PrintWrapped(fmt::format("and {} not compared: use --rank",
                             Count(answer.left_out, "more pair of classes")),
                 0, 2);
  if (!answer.only_a_ranks.empty()) PrintWrapped("ranks only in a: " + answer.only_a_ranks, 0, 2);
  if (!answer.only_b_ranks.empty()) PrintWrapped("ranks only in b: " + answer.only_b_ranks, 0, 2);
  if (answer.digests) PrintDigests(*answer.digests, all);
}

}  // namespace

int RunDiff(std::span<const std::string> arguments) {
  Arguments app(
      "What changed between two runs: compile time by phase, recompiles, graph breaks, caches and "
      "why, guards, kernels, code; with profiles on both sides the lines and kernels that got "
      "slower; with hashes of runs (libtrace_run_digest) whether the results are equal. Each side "
      "is a database, DB:run, an output directory, a log or a directory of logs.",
      "diff");
  std::vector<std::string> inputs, ranks, launches;
  DiffOptions options;
  bool as_json = false, all = false;
  app.Add("inputs", inputs, "the two sides; one, if two --rank name them").Required().Times(1, 2);
  app.Add("--rank", ranks,
          "the rank of each side (default: one of each class of equal ranks); twice for two ranks "
          "of one run")
      .OneValueEach();
  app.Add(
      "--launch", launches,
      "the launch of each side (default: the latest); twice, or as 1 2, for two launches of one "
      "run");
  app.Flag("--code", options.with_code, "unified diffs of the generated codes");
  app.Flag("--all", all, "every guard and kernel");
  app.Flag("--json", as_json, "JSON (schemas/json/answers/diff.schema.json)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (inputs.size() == 1 && ranks.size() != 2 && launches.size() != 2)
    return ReportError(
        {ErrorCode::kUsage, "diff needs two sides, or one and two --rank or two --launch"});
  if (ranks.size() > 2 || launches.size() > 2)
    return ReportError({ErrorCode::kUsage,
                        "diff compares two sides: --rank and --launch may be given twice at most"});
  for (const std::string& launch : launches) {
    if (launch.empty() || launch.size() > 9 ||
        launch.find_first_not_of("0123456789") != std::string::npos)
      return ReportError({ErrorCode::kUsage, "--launch: '" + launch + "' is not a number"});
  }
  Result<AnswerInput> a = OpenAnswerInput(inputs.front());
  if (!a) return ReportError(a.error());
  const auto rank = [&](std::size_t side) {
    return ranks.empty() ? std::nullopt : std::optional(ranks[std::min(side, ranks.size() - 1)]);
  };
  const auto launch = [&](std::size_t side) {
    return launches.empty() ? std::nullopt
                            : std::optional<std::int64_t>(
                                  std::stoll(launches[std::min(side, launches.size() - 1)]));
  };
  Result<RunComparison> answer = Fail(ErrorCode::kInternal, "nothing compared");
  if (inputs.size() == 1) {
    answer = AnalyzeRunDiff({&a->database, a->run, rank(0), launch(0)},
                            {&a->database, a->run, rank(1), launch(1)}, options);
  } else {
    Result<AnswerInput> b = OpenAnswerInput(inputs.back());
    if (!b) return ReportError(b.error());
    answer = AnalyzeRunDiff({&a->database, a->run, rank(0), launch(0)},
                            {&b->database, b->run, rank(1), launch(1)}, options);
  }
  if (!answer) return ReportError(answer.error());
  if (as_json) {
    PrintJson(ToJson(*answer));
  } else {
    PrintAll(*answer, all);
  }
  return kExitDone;
}

}  // namespace tlparse
