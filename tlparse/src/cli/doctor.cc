// tlparse doctor: what `tlparse run` would record here, and what stands in its way.
#include "runner/doctor.h"

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"

namespace tlparse {

namespace {

std::string_view NameOf(DoctorState state) {
  return state == DoctorState::kYes ? "yes" : state == DoctorState::kPartly ? "partly" : "no";
}

}  // namespace

int RunDoctor(std::span<const std::string> arguments) {
  Arguments app("What 'tlparse run' would record here, and what stands in its way.", "doctor");
  std::string python = "python3", folder = ".";
  bool is_json = false;
  app.Add("--python", python, "the Python that would run").ShowDefault();
  app.Add("-o,--output", folder, "the directory in which the output directory would be made")
      .ShowDefault();
  app.Flag("--json", is_json, "print JSON");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  const std::vector<DoctorCheck> checks = AskDoctor(python, folder);
  if (is_json) {
    JsonWriter json;
    json.BeginObject().Key("checks").BeginArray();
    for (const DoctorCheck& check : checks) {
      json.BeginObject().Key("name").String(check.name).Key("state").String(NameOf(check.state));
      json.Key("detail").String(check.detail).EndObject();
    }
    json.EndArray().EndObject();
    PrintJson(json);
    return kExitDone;
  }
  for (const DoctorCheck& check : checks) {
    const Style style = check.state == DoctorState::kYes      ? Style::kGreen
                        : check.state == DoctorState::kPartly ? Style::kYellow
                                                              : Style::kRed;
    PrintWrapped(fmt::format("{}: {}; {}", check.name, NameOf(check.state), check.detail), 0, 2,
                 style);
  }
  return kExitDone;
}

}  // namespace tlparse
