// What is said of the recompiles of one function.
#pragma once

#include <string>
#include <vector>

#include "facts/compiles/advice.h"
#include "facts/compiles/recompile_reasons.h"

namespace tlparse {

// One recompile: what each cache entry that was tried failed on, the newest entry first, or the one that
// PutTellingFirst chose.
struct Recompile {
  std::string label;
  bool is_refused = false;  // by the limit
  std::vector<FailedEntry> entries;
  bool is_of_fixed_size = false;  // a size varied, and dynamic=False compiles each for itself
  // A size varied: all that differ from those of the newest entry.
  std::vector<ChangedSize> changed_sizes = {};
  bool is_of_module = false;  // a size varied, those of parameters too: another module ran the code
  bool is_of_call = false;    // code of a library was called in another way (IsOfCall)
};

// Whether the guard is on how a function was called: the type of its first argument, or how many it
// was given. A decorator of a library has one code for all functions that it wraps.
bool IsOfCall(const RecompileReason& reason);

// Of each recompile the entry of ComparedValues::Telling comes first.
void PutTellingFirst(std::vector<Recompile>& recompiles);

// Whether the program asks for it: for another grad mode or for train and eval, which programs have
// that evaluate; for another module; for another size, with dynamic=False; for another function or
// call that a library wraps.
bool IsWanted(const Recompile& one);
// Or for what it compiled before, in another mode: it failed on a guard that an earlier recompile failed
// on, and one for a mode was between them.
bool IsWantedAt(const std::vector<Recompile>& recompiles, std::size_t at);
// The most recompiles that failed on one thing, without those that the program asks for; of modules, how
// many sizes they have beside the first.
std::size_t MostOfOneSubject(const std::vector<Recompile>& recompiles);

// More than those of programs that evaluate, or that have a few sizes. What fails on another thing each
// time comes to an end: a size that varies is dynamic from then on. `count`: of those that were made.
bool AreRepeated(const std::vector<Recompile>& recompiles, std::size_t count);

// "n: 1, 2, 3" of the guards that failed: first that on which the newest entry failed in most
// recompiles; an older entry may fail on what the newer ones have made dynamic.
std::string Varied(const std::vector<Recompile>& recompiles);
// The first of those that failed on that guard, among those with a place; nullptr: none has one.
const FailedEntry* EntryOfMost(const std::vector<Recompile>& recompiles);
Advice AdviceFor(const std::vector<Recompile>& recompiles);
// "0/2 after 0/1: n == 2; after 0/0: dtype of x …; 0/3 …": the guards that failed.
std::string FailedGuards(const std::vector<Recompile>& recompiles);

}  // namespace tlparse
