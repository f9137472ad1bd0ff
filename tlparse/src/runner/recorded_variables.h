// What the environment of a command has to hold so that PyTorch records its work: the one table of
// the variables, the versions that read them, and where that is written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "facts/compiles/change.h"

namespace tlparse {

// What a variable is for. PyTorch renamed some: all names of a purpose get the same value.
enum class RecordPurpose {
  kTrace,          // the structured trace's directory
  kBufferSize,     // entries that the flight recorder keeps
  kDumpOnTimeout,  // the recorder is written to a file when a collective times out
  kDumpFile,       // prefix of that file; the rank follows
  kDumpPipe,       // prefix of the pipe that asks for a dump; the rank and ".pipe" follow
  kPythonFaults,   // Python prints its stacks when a fatal signal comes
};

struct RecordedVariable {
  RecordPurpose purpose;
  std::string_view name;
  std::string_view since;   // the version of PyTorch (of Python: kPythonFaults) that first read it
  std::string_view source;  // where it is read, in the repository of that program
};
std::span<const RecordedVariable> RecordedVariables();

// Directories and files of a run; all are absolute.
struct RecordPlaces {
  std::string recorded;     // logs, dumps, run.json
  std::string pipes;        // empty: pipes cannot be made there
  std::string hook_folder;  // holds sitecustomize.py; empty: no hook
  std::string stacks;       // the file that Python stacks are written to, by the hook or by py-spy
  std::string ends;         // the folder in which they write where they were when a signal came
  std::string processes;    // the file in which processes with the hook say who they are
  std::string changed;      // the file that the hook's changes are named in
};

// The signal that makes a Python process with the hook write the stacks of all its threads.
int StackSignal();
// The signal that makes one profile a while, if the hook was asked for that.
int ProfileSignal();

// What the hook is to record besides.
struct HookRequests {
  std::string profile;          // "steps 3 5", "seconds 10", "demand 10"; empty: nothing
  bool memory = false;          // what the allocator of CUDA does
  std::string numbers;          // what compiled graphs give, each so many calls; empty: nothing
  std::vector<Change> changes;  // what `tlparse try` changes; variables replace those of the user
};

struct JobEnvironment {
  struct Setting {
    std::string name, value;
    bool is_users = false;  // it was set before, or another name of its purpose was
  };
  std::vector<std::string> variables;  // NAME=value: the whole environment of the command
  std::vector<Setting> settings;       // those that record; without the names that were left unset
  std::string trace;                   // where the logs are written, by the user's setting or ours
  bool has_own_trace = false;          // …which is the user's
};

// `variables`: our own environment, NAME=value. What the user has set stays as it is.
JobEnvironment MakeJobEnvironment(std::span<const char* const> variables,
                                  const RecordPlaces& places, const HookRequests& requests);

// Names and values of `variables` that say how PyTorch ran (TORCH…, NCCL_…, CUDA_VISIBLE_DEVICES,
// RANK, …). None whose name says that it is a secret.
std::vector<JobEnvironment::Setting> TellingVariables(const std::vector<std::string>& variables);

}  // namespace tlparse
