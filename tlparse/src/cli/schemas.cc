#include "cli/schemas.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <set>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/embedded_texts.h"

namespace tlparse {
namespace {

constexpr std::string_view kFolder = "json/answers/", kEnding = ".schema.json";

struct OfFields {
  std::string_view answer;
  std::string (*schema)();
};
// Of answers whose fields are declared (base/fields.h). Their files in schemas/json/answers are
// written by tests/e2e/test_documents.py --update; those of the others by hand.
constexpr OfFields kOfFields[] = {
    {"autotune", &AutotuneSchema},
    {"bisect", &BisectSchema},
    {"cache", &CacheSchema},
    {"check", &CheckSchema},
    {"collectives", &CollectivesSchema},
    {"compile", &CompileSchema},
    {"cost", &CostSchema},
    {"diff", &DiffSchema},
    {"doctor", &DoctorSchema},
    {"execution", &ExecutionSchema},
    {"explain", &ExplainSchema},
    {"findings", &FindingsSchema},
    {"history", &HistorySchema},
    {"memory", &MemorySchema},
    {"provenance", &ProvenanceSchema},
    {"ranks", &RanksSchema},
    {"recompiles", &RecompilesSchema},
    {"redact", &RedactSchema},
    {"source", &SourceSchema},
    {"status", &StatusSchema},
    {"try", &TrySchema},
    {"unknown_names", &UnknownNamesSchema},
    {"watch", &WatchSchema},
};

}  // namespace

std::vector<std::string_view> AnswersWithSchema() {
  std::set<std::string_view> answers;
  for (const OfFields& one : kOfFields) answers.insert(one.answer);
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (!file.name.starts_with(kFolder)) continue;
    std::string_view name = file.name.substr(kFolder.size());
    name.remove_suffix(kEnding.size());
    answers.insert(name);
  }
  return {answers.begin(), answers.end()};
}

std::string AnswerSchema(std::string_view answer) {
  for (const OfFields& one : kOfFields)
    if (one.answer == answer) return one.schema();
  return std::string(EmbeddedText(fmt::format("{}{}{}", kFolder, answer, kEnding)));
}

int RunSchema(std::span<const std::string> arguments) {
  Arguments app("The JSON Schema of what an answer writes with --json. Without a name: the names.",
                "schema");
  std::optional<std::string> answer;
  app.Add("answer", answer, "diff, findings, fleet_time, …");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (!answer) {
    for (const std::string_view one : AnswersWithSchema()) fmt::print("{}\n", one);
    return kExitDone;
  }
  const std::string schema = AnswerSchema(*answer);
  if (schema.empty())
    return ReportError(
        {ErrorCode::kUsage,
         fmt::format("no answer '{}' has a schema: 'tlparse schema' lists them", *answer)});
  fmt::print("{}\n", schema);
  return kExitDone;
}

}  // namespace tlparse
