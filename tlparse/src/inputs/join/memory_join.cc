#include "inputs/join/memory_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "enums/memory.h"
#include "inputs/join/buffer_kernels.h"
#include "inputs/join/join_profile.h"
#include "inputs/join/memory_stack.h"
#include "inputs/join/recorder_code.h"
#include "inputs/join/user_line.h"
#include "log/inductor_texts.h"
#include "queries/inputs/join/memory_join.h"

namespace tlparse {
namespace {

// The join of one site.
struct SiteLink {
  MemoryCategory category = MemoryCategory::kUnknown;
  std::optional<std::int64_t> compile_id, graph_id, code_line, kernel_id, line;
  std::string file, function, note;
  std::string_view key;
};

class MemoryJoin {
 public:
  explicit MemoryJoin(Database& database) : database_(database) {}

  Result<void> JoinSnapshot(std::int64_t profile_id, std::optional<std::int64_t> process_id);
  Result<void> JoinProfileMemory(std::int64_t profile_id);

 private:
  using Text = std::optional<std::int64_t>;
  struct Open {
    std::int64_t start_ns = 0, end_ns = 0, kind = 0, slice_id = 0, name_id = 0;
    std::optional<std::int64_t> graph_id, compile_id;
    std::string name;
  };
  // An allocation of a profile, and what is open on its thread.
  struct Allocation {
    std::int64_t event_id = 0, size_bytes = 0;
    bool is_cpu = false;
    bool has_own_op = false;  // an op in the graph call allocates it, not its code
    bool is_alone = false;    // nothing is open
    UserLine line;
    bool has_slice = false, is_optimizer = false, is_backward = false;
    std::int64_t slice_id = 0, op_id = 0, annotation_id = 0;
    std::optional<std::int64_t> graph_id, compile_id, code_line;
  };

  // How much it says of compiled code.
  static int Weight(const Open& slice) {
    return slice.graph_id ? 3 : slice.compile_id ? 2 : slice.name == "region" ? 1 : 0;
  }
  // What sites of one graph share; of slices that no log explains each is one.
  static std::pair<std::int64_t, std::int64_t> GraphKey(const Allocation& one) {
    if (!one.has_slice) return {0, 0};
    if (one.graph_id) return {1, *one.graph_id};
    return one.compile_id ? std::pair(std::int64_t{2}, *one.compile_id)
                          : std::pair(std::int64_t{3}, one.slice_id);
  }
  Result<SiteLink> LinkOf(std::int64_t stack_id, std::string_view region,
                          std::optional<std::int64_t> process_id, const RecorderCode& codes);
  Result<void> AddLink(std::int64_t site_id, std::int64_t profile_id, const SiteLink& link);
  static Allocation AllocationOf(const AllocationOfProfile& event, const std::vector<Open>& open,
                                 const std::vector<OpenFrame>& frames);
  static std::string NoteOf(const Allocation& one);
  Result<std::vector<Allocation>> AllocationsOf(std::int64_t profile_id);
  Result<void> FindLines(std::vector<Allocation>& allocations);
  Result<std::int64_t> SiteOf(std::int64_t profile_id, const Allocation& one);
  Result<Text> TextOf(const std::string& text);

  Database& database_;
  BufferKernels kernels_;
  WholePaths paths_;
  std::unordered_map<std::string, std::int64_t> texts_;
  std::map<std::tuple<std::pair<std::int64_t, std::int64_t>, std::int64_t, std::int64_t,
                      std::int64_t, bool, bool, std::pair<std::int64_t, std::int64_t>>,
           std::int64_t>
      sites_;  // of the profile that is joined
  std::int64_t next_site_ = 0;
};

Result<MemoryJoin::Text> MemoryJoin::TextOf(const std::string& text) {
  if (text.empty()) return Text();
  std::int64_t& id = texts_[text];
  if (id == 0) {
    ASSIGN_OR_RETURN(id, NoteId(database_, text));
  }
  return Text(id);
}

Result<void> MemoryJoin::AddLink(std::int64_t site_id, std::int64_t profile_id,
                                 const SiteLink& link) {
  ASSIGN_OR_RETURN(
      Statement * insert,
      database_.PrepareKept(
          "INSERT INTO memory_site_link_row (site_id, profile_id, category, "
          "compile_id, graph_id, code_line, file_id, line, in_function_id, "
          "join_key, note_id, kernel_id) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"));
  ASSIGN_OR_RETURN(const Text file, TextOf(link.file));
  ASSIGN_OR_RETURN(const Text function, TextOf(link.function));
  ASSIGN_OR_RETURN(const Text note, TextOf(link.note));
  insert->Bind(1, site_id);
  insert->Bind(2, profile_id);
  insert->Bind(3, static_cast<std::int64_t>(link.category));
  insert->Bind(4, link.compile_id);
  insert->Bind(5, link.graph_id);
  insert->Bind(6, link.code_line);
  insert->Bind(7, file);
  insert->Bind(8, link.line);
  insert->Bind(9, function);
  if (link.key.empty())
    insert->BindNull(10);
  else
    insert->Bind(10, link.key);
  insert->Bind(11, note);
  insert->Bind(12, link.kernel_id);
  return insert->Run();
}

Result<SiteLink> MemoryJoin::LinkOf(std::int64_t stack_id, std::string_view region,
                                    std::optional<std::int64_t> process_id,
                                    const RecorderCode& codes) {
  SiteLink link;
  ASSIGN_OR_RETURN(const MemoryStack stack, ReadMemoryStack(database_, stack_id, codes));
  link.category = stack.category;
  link.file = stack.file;
  link.function = stack.function;
  if (!stack.file.empty()) link.line = stack.line;
  const bool is_region = region.starts_with(inductor::kRegion);
  if (is_region) link.category = MemoryCategory::kCompiled;
  if (stack.graph_id != 0) {
    ASSIGN_OR_RETURN(const FirstRow<GraphOfMemory> graph,
                     First(KeptQuery<GraphOfMemory>(database_, {.graph_id = stack.graph_id})));
    if (graph) link.compile_id = graph->compile_id;
    link.graph_id = stack.graph_id;
    link.code_line = stack.code_line;
    ASSIGN_OR_RETURN(link.kernel_id, kernels_.At(database_, stack.graph_id, stack.code_line));
    link.key = "M2";
  } else if (is_region && process_id) {
    const std::string_view label = region.substr(inductor::kRegion.size());
    ASSIGN_OR_RETURN(
        const FirstRow<CompileOfRegion> compile,
        First(KeptQuery<CompileOfRegion>(database_, {.process_id = *process_id, .label = label})));
    if (compile) {
      link.compile_id = compile->id;
      link.key = "M1";
    } else {
      link.note = fmt::format("the log of the process has no compile {}", label);
    }
  }
  if (link.key.empty() && link.note.empty()) {
    if (is_region || !stack.unknown_file.empty())
      link.note = process_id ? fmt::format("the log of the process holds no code of the file {}",
                                           stack.unknown_file)
                             : "no log of this process is in the run";
    else if (!region.empty())
      link.note = fmt::format("compile_context '{}' is no compiled region", region);
    else if (stack_id == 0)
      link.note = "no stack was recorded";
    else if (stack.file.empty())
      link.note = "no frame of its stack is a Python line outside PyTorch";
    else
      link.note = "allocated outside compiled graphs";
  }
  return link;
}

Result<void> MemoryJoin::JoinSnapshot(std::int64_t profile_id,
                                      std::optional<std::int64_t> process_id) {
  RecorderCode codes;
  RETURN_IF_ERROR(codes.Load(database_, process_id));
  RETURN_IF_ERROR(Execute<RemoveSiteLinks>(database_, {.profile_id = profile_id}));
  FOR_EACH_ROW(const SiteToJoin& site, Query<SiteToJoin>(database_, {.profile_id = profile_id})) {
    ASSIGN_OR_RETURN(const SiteLink link, LinkOf(site.stack_id, site.region, process_id, codes));
    RETURN_IF_ERROR(AddLink(site.id, profile_id, link));
  }
  return {};
}

MemoryJoin::Allocation MemoryJoin::AllocationOf(const AllocationOfProfile& event,
                                                const std::vector<Open>& open,
                                                const std::vector<OpenFrame>& frames) {
  Allocation made;
  made.event_id = event.id;
  made.size_bytes = event.size_bytes;
  made.is_cpu = event.is_cpu;
  made.is_alone = open.empty();
  made.line = UserLineOf(frames);
  const Open* slice = nullptr;
  const Open* op = nullptr;
  for (const Open& one : open) {
    // Of those that say as much the innermost.
    if (one.kind == 0 && (slice == nullptr || Weight(one) >= Weight(*slice))) slice = &one;
    if (one.kind == 1) made.annotation_id = one.name_id;
    if (one.kind == 2) op = &one;
    made.is_optimizer |= one.kind == 1 && one.name.starts_with("Optimizer.step");
    made.is_backward |=
        one.kind == 2 && one.name.starts_with("autograd::engine::evaluate_function");
  }
  if (op != nullptr) made.op_id = op->name_id;
  made.has_slice = slice != nullptr;
  if (slice == nullptr) return made;
  made.slice_id = slice->slice_id;
  made.graph_id = slice->graph_id;
  made.compile_id = slice->compile_id;
  made.has_own_op = op != nullptr && op->start_ns > slice->start_ns;
  return made;
}

// Whether an event is the allocation of this line: on devices the allocator may give a whole block whose
// rest it would not split off.
bool Fits(const BufferLine& line, std::int64_t size_bytes, bool is_cpu) {
  constexpr std::int64_t kMostUnsplit = (1 << 20) + 512;
  if (line.is_cpu != is_cpu) return false;
  if (!line.bytes) return true;
  return is_cpu ? size_bytes == *line.bytes
                : size_bytes >= *line.bytes && size_bytes <= *line.bytes + kMostUnsplit;
}

// Generated code has no branches: where the allocations of a call are as many as the lines that
// allocate, each of the size of its line, they are of these lines.
Result<void> MemoryJoin::FindLines(std::vector<Allocation>& allocations) {
  std::map<std::int64_t, std::vector<Allocation*>> calls;  // by slice
  for (Allocation& one : allocations)
    if (one.graph_id && !one.has_own_op) calls[one.slice_id].push_back(&one);
  for (const auto& [slice_id, made] : calls) {
    ASSIGN_OR_RETURN(const std::vector<BufferLine>* const lines,
                     kernels_.Lines(database_, *made.front()->graph_id));
    const bool is_code = std::equal(made.begin(), made.end(), lines->begin(), lines->end(),
                                    [](const Allocation* one, const BufferLine& line) {
                                      return Fits(line, one->size_bytes, one->is_cpu);
                                    });
    for (std::size_t i = 0; is_code && i < made.size(); ++i) made[i]->code_line = (*lines)[i].line;
  }
  return {};
}

// Of an allocation outside compiled code.
std::string MemoryJoin::NoteOf(const Allocation& one) {
  if (one.line.line > 0) return "allocated outside compiled graphs";
  if (!one.line.inside.empty())
    return fmt::format("on a line of {} that no frame names", one.line.inside);
  return one.is_alone ? "nothing was open on its thread"
                      : "no call of a compiled graph was open on its thread";
}

// The site of an allocation in a profile.
Result<std::int64_t> MemoryJoin::SiteOf(std::int64_t profile_id, const Allocation& one) {
  const auto [entry, is_new] = sites_.try_emplace({GraphKey(one),
                                                   one.code_line.value_or(0),
                                                   one.op_id,
                                                   one.annotation_id,
                                                   one.is_optimizer,
                                                   one.is_backward,
                                                   {one.line.id, one.line.line}},
                                                  next_site_);
  if (!is_new) return entry->second;
  ++next_site_;
  const auto known = [](std::int64_t id) { return id == 0 ? std::nullopt : std::optional(id); };
  ASSIGN_OR_RETURN(
      Statement * insert,
      database_.PrepareKept("INSERT INTO memory_site_row (id, profile_id, slice_id, op_id, "
                            "annotation_id) VALUES (?1, ?2, ?3, ?4, ?5)"));
  insert->Bind(1, entry->second);
  insert->Bind(2, profile_id);
  insert->Bind(3, known(one.slice_id));
  insert->Bind(4, known(one.op_id));
  insert->Bind(5, known(one.annotation_id));
  RETURN_IF_ERROR(insert->Run());
  SiteLink link;
  if (one.line.line > 0) {
    ASSIGN_OR_RETURN(link.file, paths_.Of(database_, one.line.file));
    link.line = one.line.line;
    link.function = one.line.function;
  } else {
    link.function = one.line.inside;
  }
  if (one.has_slice) {
    link.compile_id = one.compile_id;
    link.graph_id = one.graph_id;
    link.code_line = one.code_line;
    if (one.code_line) {
      ASSIGN_OR_RETURN(link.kernel_id, kernels_.At(database_, *one.graph_id, *one.code_line));
    }
    if (one.compile_id)
      link.key = one.code_line ? "M4" : "M3";
    else
      link.note = "compiled code, of which no log is in the run";
  } else {
    link.note = NoteOf(one);
  }
  link.category = one.has_slice                      ? MemoryCategory::kCompiled
                  : one.is_optimizer                 ? MemoryCategory::kOptimizer
                  : one.is_backward                  ? MemoryCategory::kBackward
                  : one.is_alone && one.line.id == 0 ? MemoryCategory::kUnknown
                                                     : MemoryCategory::kOther;
  RETURN_IF_ERROR(AddLink(entry->second, profile_id, link));
  return entry->second;
}

Result<std::vector<MemoryJoin::Allocation>> MemoryJoin::AllocationsOf(std::int64_t profile_id) {
  std::vector<Allocation> allocations;
  QueryRows<OpenOnThread> opening = Query<OpenOnThread>(database_, {.profile_id = profile_id});
  bool has_next = opening.Next();
  std::vector<Open> open;
  std::vector<OpenFrame> frames;
  std::int64_t thread = -1;
  FOR_EACH_ROW(const AllocationOfProfile& event,
               Query<AllocationOfProfile>(database_, {.profile_id = profile_id})) {
    if (event.thread_id != thread) open.clear(), frames.clear();
    thread = event.thread_id;
    while (has_next &&
           (opening.row().thread_id < thread ||
            (opening.row().thread_id == thread && opening.row().start_ns <= event.time_ns))) {
      const OpenOnThread& row = opening.row();
      const bool is_open = row.thread_id == thread && row.end_ns >= event.time_ns;
      if (is_open && row.is_frame)
        frames.push_back({row.start_ns, row.end_ns, row.name_id, std::string(row.name), row.file_id,
                          row.line, std::string(row.file)});
      else if (is_open)
        open.push_back({row.start_ns, row.end_ns, row.rank, row.slice_id, row.name_id, row.graph_id,
                        row.compile_id, std::string(row.name)});
      has_next = opening.Next();
    }
    const auto is_over = [&](const auto& one) { return one.end_ns < event.time_ns; };
    std::erase_if(open, is_over);
    std::erase_if(frames, is_over);
    allocations.push_back(AllocationOf(event, open, frames));
  }
  if (const std::unique_ptr<Error> error = opening.TakeError())
    return tl::unexpected<Error>(std::move(*error));
  return allocations;
}

Result<void> MemoryJoin::JoinProfileMemory(std::int64_t profile_id) {
  RETURN_IF_ERROR(Execute<RemoveSiteLinks>(database_, {.profile_id = profile_id}));
  RETURN_IF_ERROR(Execute<ResetSitesOfEvents>(database_, {.profile_id = profile_id}));
  RETURN_IF_ERROR(Execute<ResetSitesOfAllocations>(database_, {.profile_id = profile_id}));
  RETURN_IF_ERROR(Execute<RemoveJoinedSites>(database_, {.profile_id = profile_id}));
  ASSIGN_OR_RETURN(const FirstRow<LastSite> last, First(Query<LastSite>(database_)));
  next_site_ = last->id + 1;
  sites_.clear();
  ASSIGN_OR_RETURN(std::vector<Allocation> allocations, AllocationsOf(profile_id));
  RETURN_IF_ERROR(FindLines(allocations));
  ASSIGN_OR_RETURN(Statement * set,
                   database_.PrepareKept("UPDATE memory_event_row SET site_id = ?2 WHERE id = ?1"));
  for (const Allocation& one : allocations) {
    ASSIGN_OR_RETURN(const std::int64_t site, SiteOf(profile_id, one));
    set->Bind(1, one.event_id);
    set->Bind(2, site);
    RETURN_IF_ERROR(set->Run());
  }
  return Execute<SitesOfAllocations>(database_, {.profile_id = profile_id});
}

}  // namespace

Result<void> JoinMemory(Database& database, std::int64_t run_id) {
  MemoryJoin join(database);
  FOR_EACH_ROW(const ProfileOfMemory& profile,
               Query<ProfileOfMemory>(database, {.run_id = run_id})) {
    RETURN_IF_ERROR(profile.is_profile ? join.JoinProfileMemory(profile.id)
                                       : join.JoinSnapshot(profile.id, profile.process_id));
  }
  return {};
}

}  // namespace tlparse
