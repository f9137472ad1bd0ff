// tlparse compile <db> 1/0: one compile on one rank, whole.
#include "answers/compile/compile.h"

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/compile.h"
#include "cli/compile_output.h"

namespace tlparse {

int RunCompile(std::span<const std::string> arguments) {
  Arguments app(
      "One compile on one rank: from where it was called, which lines of the user's it traced and "
      "which only here or only on other ranks of its role, inputs, guards that failed, time by "
      "phase, caches and why, options, how it ended, what came next.",
      "compile");
  AnswerArguments common;
  CompileOptions options;
  AddAnswerArguments(app, common);
  app.Add("label", options.label, "the compile: 1/0, 1/0#2 of its second use after a reset")
      .Required();
  AddAsked(app, options.asked,
           "on this rank (default: the first that did not finish it, else the first)",
           "in the process of this pid");
  app.Add("--run", options.run, "the run of this name (default: the latest)");
  app.Add("--launch", options.launch, "this launch (1 is the first; default: the latest)")
      .Positive();
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  return AnswerFrom(common.database, [&](Database& database) -> Result<void> {
    ASSIGN_OR_RETURN(const CompileAnswer answer, AnalyzeCompile(database, options));
    common.json ? PrintJson(CompileJson(answer)) : PrintCompile(answer);
    return {};
  });
}

}  // namespace tlparse
