#include "report/viewer/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "facts/cost/cost.h"
#include "report/viewer/chunk.h"
#include "report/viewer/slices.h"

namespace tlparse {
namespace {

// Rows of one table: about 200 bytes each. A run of very many profiles gets fewer of each.
constexpr std::int64_t kMostRowsOfTable = 5000;
constexpr std::int64_t kLeastRows = 50;
constexpr std::int64_t kMostRowsOfRun = 400'000;

void AddReal(ChunkWriter& writer, const std::optional<double>& value) {
  value ? writer.AddReal(*value) : writer.AddNumber(std::nullopt);
}

void AddWindow(const CostAnswer& answer, std::int64_t origin_us, ChunkWriter& writer) {
  writer.BeginTable("window",
                    {"steps", "first_step", "last_step", "start_us", "window_us", "compiled_us",
                     "outside_us", "kernel_us", "joined_kernel_us", "compile_us"},
                    {});
  for (const CostProfile& profile : answer.profiles) {
    writer.AddNumber(profile.steps);
    writer.AddNumber(profile.first_step);
    writer.AddNumber(profile.last_step);
    writer.AddReal(OffsetUs(profile.start_ns, origin_us));
    writer.AddReal(profile.window_us);
    writer.AddReal(profile.compiled_us);
    writer.AddReal(profile.outside_us);
    AddReal(writer, profile.kernel_us);
    writer.AddReal(profile.joined_kernel_us);
    AddReal(writer, profile.compile_us);
  }
  constexpr std::size_t kMostParts = 4;
  constexpr double kLeastShare = 0.01;  // of the window
  writer.BeginTable("outside", {"us"}, {"name"});
  for (const CostProfile& profile : answer.profiles) {
    for (std::size_t i = 0; i < std::min(kMostParts, profile.outside.size()); ++i) {
      if (profile.outside[i].us < kLeastShare * profile.window_us) break;
      writer.AddReal(profile.outside[i].us);
      writer.AddText(OptionalText(profile.outside[i].name));
    }
  }
  writer.BeginTable("device",
                    {"device", "kernels", "has_own_steps", "window_us", "busy_us", "idle_us"}, {});
  for (const CostProfile& profile : answer.profiles) {
    for (const CostProfile::Device& device : profile.devices) {
      writer.AddNumber(device.device);
      writer.AddNumber(device.kernels);
      writer.AddNumber(device.has_own_steps ? 1 : 0);
      writer.AddReal(device.window_us);
      writer.AddReal(device.busy_us);
      writer.AddReal(device.idle_us);
    }
  }
  writer.BeginTable("note", {}, {"text"});
  for (const std::string& note : answer.notes) writer.AddText(note);
}

void AddKernel(const CostRow& row, ChunkWriter& writer) {
  writer.AddNumber(row.kernel_id);
  writer.AddNumber(row.graph_id);
  writer.AddNumber(row.debug_handle);
  writer.AddNumber(row.calls);
  writer.AddReal(row.inclusive_us);
  AddReal(writer, row.longest_us);
  AddReal(writer, row.estimated_us);
  writer.AddNumber(row.peak_bytes);
  writer.AddText(row.name);
  writer.AddText(OptionalText(row.label));
  writer.AddText(OptionalText(row.direction));
  writer.AddText(OptionalText(row.lines));
  writer.AddText(OptionalText(row.grid));
  writer.AddText(OptionalText(row.block));
  writer.AddText(OptionalText(row.join_note));
}

void AddLine(const CostRow& row, ChunkWriter& writer) {
  writer.AddNumber(row.line);
  writer.AddNumber(row.calls);
  writer.AddReal(row.inclusive_us);
  writer.AddReal(row.share_us);
  writer.AddNumber(row.peak_bytes);
  writer.AddText(OptionalText(row.file));
  writer.AddText(OptionalText(row.function));
  writer.AddText(OptionalText(row.name));
  writer.AddText(OptionalText(row.join_note));
}

void AddGraph(const CostRow& row, ChunkWriter& writer) {
  writer.AddNumber(row.graph_id);
  writer.AddNumber(row.calls);
  writer.AddReal(row.inclusive_us);
  AddReal(writer, row.longest_us);
  AddReal(writer, row.device_us);
  AddReal(writer, row.compile_us);
  writer.AddNumber(row.peak_bytes);
  writer.AddText(OptionalText(row.name));
  writer.AddText(OptionalText(row.label));
  writer.AddText(OptionalText(row.direction));
  writer.AddText(OptionalText(row.join_note));
}

void AddOp(const CostRow& row, ChunkWriter& writer) {
  writer.AddNumber(row.calls);
  writer.AddReal(row.inclusive_us);
  AddReal(writer, row.cpu_us);
  AddReal(writer, row.device_us);
  writer.AddText(row.name.empty() ? fmt::format("({})", row.join_note) : row.name);
}

void AddModule(const CostRow& row, ChunkWriter& writer) {
  writer.AddNumber(row.calls);
  writer.AddReal(row.inclusive_us);
  writer.AddReal(row.share_us);
  AddReal(writer, row.cpu_us);
  AddReal(writer, row.device_us);
  writer.AddText(OptionalText(row.name));
}

struct Question {
  CostBy by;
  std::string_view table;
  std::vector<std::string_view> numbers;
  std::vector<std::string_view> texts;
  void (*add)(const CostRow&, ChunkWriter&);
};

const std::vector<Question>& Questions() {
  static const std::vector<Question> questions = {
      {CostBy::kKernel,
       "kernel",
       {"kernel_id", "graph_id", "debug_handle", "calls", "inclusive_us", "longest_us",
        "estimated_us", "peak_bytes"},
       {"name", "label", "direction", "lines", "grid", "block", "join_note"},
       AddKernel},
      {CostBy::kLine,
       "line",
       {"line", "calls", "inclusive_us", "share_us", "peak_bytes"},
       {"file", "function", "code", "join_note"},
       AddLine},
      {CostBy::kGraph,
       "graph",
       {"graph_id", "calls", "inclusive_us", "longest_us", "device_us", "compile_us", "peak_bytes"},
       {"function", "label", "direction", "join_note"},
       AddGraph},
      {CostBy::kOp, "op", {"calls", "inclusive_us", "self_us", "device_us"}, {"name"}, AddOp},
      {CostBy::kModule,
       "module",
       {"calls", "inclusive_us", "share_us", "cpu_us", "device_us"},
       {"name"},
       AddModule},
  };
  return questions;
}

struct UnshownRows {
  std::string_view table;
  std::int64_t rows = 0;
  double us = 0;
};

// Of each question the `most` rows that cost most; the number and the time of the others.
void AddTables(const std::vector<CostAnswer>& answers, std::int64_t most, ChunkWriter& writer) {
  const std::vector<Question>& questions = Questions();
  std::vector<UnshownRows> left_out;
  for (std::size_t n = 0; n < questions.size(); ++n) {
    const Question& question = questions[n];
    const CostAnswer& answer = answers[n];
    writer.BeginTable(question.table, question.numbers, question.texts);
    UnshownRows rest{question.table};
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
      if (static_cast<std::int64_t>(i) < most) {
        question.add(answer.rows[i], writer);
      } else {
        ++rest.rows;
        const CostRow& row = answer.rows[i];
        rest.us += row.share_us;
      }
    }
    if (rest.rows > 0) left_out.push_back(rest);
  }
  writer.BeginTable("left_out", {"rows", "us"}, {"table"});
  for (const UnshownRows& rest : left_out) {
    writer.AddNumber(rest.rows);
    writer.AddReal(rest.us);
    writer.AddText(rest.table);
  }
}

}  // namespace

Result<std::string> CostChunk(Database& database, std::int64_t run_id, std::int64_t profile_id,
                              std::int64_t origin_us) {
  ASSIGN_OR_RETURN(
      const std::int64_t overlaps_id,
      database.QueryInt(fmt::format("SELECT overlaps_id FROM profile WHERE id = {}", profile_id)));
  ASSIGN_OR_RETURN(const std::int64_t most,
                   RowsOfProfile(database, run_id, {kMostRowsOfRun, kLeastRows, kMostRowsOfTable}));
  CostOptions options;
  options.run_id = run_id;
  options.profile_id = profile_id;
  ASSIGN_OR_RETURN(const bool has_modules, HasModules(database, profile_id));
  const std::vector<Question>& questions = Questions();
  std::vector<CostBy> asked;
  for (const Question& question : questions) {
    if (question.by != CostBy::kModule || has_modules) asked.push_back(question.by);
  }
  std::vector<CostAnswer> answers(questions.size());
  if (overlaps_id == 0) {
    // Sums of impossible times may exceed 64 bits: the page shows the error.
    Result<std::vector<CostAnswer>> found = Costs(database, options, asked);
    if (found) {
      answers = std::move(*found);
      answers.resize(questions.size());  // modules are the last question
    } else {
      answers.front().notes.push_back("What it cost could not be computed: " +
                                      found.error().message);
    }
  }
  ChunkWriter writer;
  AddWindow(answers.front(), origin_us, writer);
  AddTables(answers, most, writer);
  return writer.Finish();
}

}  // namespace tlparse
