// tlparse completion <shell>: a script that makes a shell complete tlparse's commands, options and values.
#include <cstdio>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace tlparse {
namespace {

// Each asks `tlparse __complete WORD…` (complete.cc) for lines "value<TAB>meaning"; without a line the shell offers files.
constexpr const char* kBash = R"sh(# bash completion of tlparse: source <(tlparse completion bash)
_tlparse() {
  local line value
  COMPREPLY=()
  while IFS= read -r line; do
    value=${line%%$'\t'*}
    COMPREPLY+=("$(printf '%q' "$value")")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -o bashdefault -F _tlparse tlparse
)sh";
constexpr const char* kZsh = R"sh(#compdef tlparse
# zsh completion of tlparse: source <(tlparse completion zsh), or a file _tlparse in a folder of $fpath
_tlparse() {
  local line
  local -a values meanings
  while IFS= read -r line; do
    values+=("${line%%$'\t'*}")
    meanings+=("${line/$'\t'/  }")
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#values} )); then
    compadd -l -d meanings -a values
  else
    _files
  fi
}
if [[ "${funcstack[1]}" == _tlparse ]]; then
  _tlparse "$@"
else
  compdef _tlparse tlparse
fi
)sh";
constexpr const char* kFish = R"sh(# fish completion of tlparse: tlparse completion fish | source
function __tlparse_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $lines) -gt 0
        printf '%s\n' $lines
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c tlparse -f -a '(__tlparse_complete)'
)sh";

}  // namespace

int RunCompletion(std::span<const std::string> arguments) {
  Arguments app(
      "Print a script for a shell that completes commands, options, and values: runs, ranks, "
      "launches and kernels of the database on the line. For bash: source <(tlparse completion "
      "bash); for zsh the same; for fish: tlparse completion fish | source.",
      "completion");
  std::string shell;
  app.Add("shell", shell, "bash, zsh or fish").Required().OneOf({"bash", "zsh", "fish"});
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  std::fputs(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish, stdout);
  return kExitDone;
}

}  // namespace tlparse
