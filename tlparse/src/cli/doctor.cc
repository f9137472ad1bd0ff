// tlparse doctor: what `tlparse run` would record here, and what stands in its way.
#include "runner/doctor.h"

#include <fmt/format.h>

#include "base/fields.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "cli/terminal.h"

namespace tlparse {

namespace {

constexpr std::string_view kYesOrNo[] = {"yes", "partly", "no"};

std::string_view StateOf(const DoctorCheck& check) {
  return kYesOrNo[check.state == DoctorState::kYes      ? 0
                  : check.state == DoctorState::kPartly ? 1
                                                        : 2];
}

struct DoctorAnswer {
  std::vector<DoctorCheck> checks;
};

}  // namespace

template <>
struct FieldsOf<DoctorCheck> {
  using Of = DoctorCheck;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"state", &StateOf, "", kYesOrNo},
      Field{"detail", &Of::detail, "what was found; of partly and no also why, and what to do"},
  };
};

template <>
struct FieldsOf<DoctorAnswer> {
  static constexpr std::string_view description =
      "What tlparse run would record on this machine, and what stands in its way.";
  static constexpr FieldList list{Field{"checks", &DoctorAnswer::checks}};
};

std::string DoctorSchema() { return SchemaOf<DoctorAnswer>("tlparse doctor --json"); }

int RunDoctor(std::span<const std::string> arguments) {
  Arguments app("What 'tlparse run' would record here, and what stands in its way.", "doctor");
  std::string python = "python3", folder = ".";
  bool is_json = false;
  app.Add("--python", python, "the Python that would run").ShowDefault();
  app.Add("-o,--output", folder, "the directory in which the output directory would be made")
      .ShowDefault();
  app.Flag("--json", is_json, "print JSON");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  const DoctorAnswer answer{AskDoctor(python, folder)};
  if (is_json) {
    PrintJson(ToJson(answer));
    return kExitDone;
  }
  for (const DoctorCheck& check : answer.checks) {
    const Style style = check.state == DoctorState::kYes      ? Style::kGreen
                        : check.state == DoctorState::kPartly ? Style::kYellow
                                                              : Style::kRed;
    PrintWrapped(fmt::format("{}: {}; {}", check.name, StateOf(check), check.detail), 0, 2, style);
  }
  return kExitDone;
}

}  // namespace tlparse
