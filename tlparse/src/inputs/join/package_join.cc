#include "inputs/join/package_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inputs/join/join_profile.h"
#include "queries/inputs/join/package_join.h"

namespace tlparse {
namespace {

struct Model {
  std::vector<std::int64_t> kernels;  // ids, in order
  std::vector<std::string> names;
  std::string name;             // of the model in its package; empty: only the log is known
  std::int64_t graph_id = 0;    // of the log of its compile; 0: not in the run
  std::int64_t compile_id = 0;  // 0: not in the run
};

struct Event {
  std::int64_t id = 0;
  bool is_op = false;  // of op_run_row, not kernel_run_row
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
};

// "graph_1_cpp_fused_add_0" → "cpp_fused_add_0".
std::string_view KernelName(std::string_view name) {
  std::string_view rest = name;
  if (!rest.starts_with("graph_")) return name;
  rest.remove_prefix(6);
  const std::size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == rest.npos || rest[digits] != '_') return name;
  return rest.substr(digits + 1);
}

template <typename Row>
Result<std::vector<Model>> ModelsOf(QueryRows<Row> rows) {
  std::map<std::int64_t, Model> models;
  FOR_EACH_ROW(const Row& row, std::move(rows)) {
    Model& model = models[row.id];
    model.kernels.push_back(row.kernel_id);
    model.names.emplace_back(row.kernel_name);
    model.name = row.name;
    model.graph_id = row.graph_id;
    model.compile_id = row.compile_id;
  }
  std::vector<Model> all;
  for (auto& [id, model] : models) all.push_back(std::move(model));
  return all;
}

// The models of packages, and those that the logs saw AOTInductor compile: its stretches of a log
// have no compile id.
Result<std::vector<Model>> LoadModels(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(std::vector<Model> models,
                   ModelsOf(Query<ModelOfLog>(database, {.run_id = run_id})));
  ASSIGN_OR_RETURN(std::vector<Model> packed,
                   ModelsOf(Query<ModelOfPackage>(database, {.run_id = run_id})));
  for (Model& model : packed) models.push_back(std::move(model));
  // A package says the same as the log of its compile, and a kernel_information.json the same as
  // the package beside it: the first counts.
  std::vector<Model> distinct;
  for (Model& model : models) {
    const auto same = std::find_if(distinct.begin(), distinct.end(),
                                   [&](const Model& other) { return other.names == model.names; });
    if (same == distinct.end()) {
      distinct.push_back(std::move(model));
    } else if (same->name.empty()) {
      same->name = std::move(model.name);
    }
  }
  std::sort(distinct.begin(), distinct.end(),
            [](const Model& a, const Model& b) { return a.names.size() > b.names.size(); });
  return distinct;
}

// Kernels without a graph and ops of those names, by thread and time.
Result<std::map<std::int64_t, std::vector<Event>>> LoadEvents(Database& database,
                                                              std::int64_t profile_id,
                                                              const std::vector<Model>& models) {
  std::unordered_map<std::string, bool> wanted;
  for (const Model& model : models) {
    for (const std::string& name : model.names) wanted[name] = true;
  }
  std::map<std::int64_t, std::vector<Event>> events;
  FOR_EACH_ROW(const UnjoinedRun& row, Query<UnjoinedRun>(database, {.profile_id = profile_id})) {
    std::string name(KernelName(row.name));
    if (!row.is_op || wanted.count(name) > 0)
      events[row.thread_id].push_back(
          {row.id, row.is_op, std::move(name), row.start_ns, row.end_ns});
  }
  return events;
}

bool Matches(const Model& model, const std::vector<Event>& events, std::size_t at) {
  if (model.names.size() > events.size() - at) return false;
  for (std::size_t i = 0; i < model.names.size(); ++i) {
    if (events[at + i].name != model.names[i]) return false;
  }
  return true;
}

class Writer {
 public:
  explicit Writer(Database& database) : database_(database) {}

  // One run of the model: its kernels are the events from `first` on.
  Result<void> AddRun(std::int64_t profile_id, std::int64_t thread_id, const Model& model,
                      const Event* first) {
    ASSIGN_OR_RETURN(const std::int64_t slice_id,
                     AddSlice(profile_id, thread_id, model, first->start_ns,
                              first[model.kernels.size() - 1].end_ns));
    for (std::size_t i = 0; i < model.kernels.size(); ++i)
      RETURN_IF_ERROR(Link(first[i], slice_id, model.kernels[i]));
    return {};
  }

 private:
  Result<std::int64_t> AddSlice(std::int64_t profile_id, std::int64_t thread_id, const Model& model,
                                std::int64_t start_ns, std::int64_t end_ns) {
    ASSIGN_OR_RETURN(Statement * add,
                     database_.PrepareKept("INSERT INTO compiled_slice_row (profile_id, "
                                           "kind, name_id, thread_id, start_ns, duration_ns) "
                                           "VALUES (?1, 7, ?2, ?3, ?4, ?5)"));
    std::optional<std::int64_t> name_id;
    if (!model.name.empty()) {
      ASSIGN_OR_RETURN(name_id, NoteId(database_, model.name));
    }
    add->Bind(1, profile_id);
    add->Bind(2, name_id);
    add->Bind(3, thread_id == 0 ? std::nullopt : std::optional(thread_id));
    add->Bind(4, start_ns);
    add->Bind(5, end_ns - start_ns);
    RETURN_IF_ERROR(add->Run());
    const std::int64_t slice_id = sqlite3_last_insert_rowid(database_.handle());
    ASSIGN_OR_RETURN(
        Statement * link,
        database_.PrepareKept("INSERT INTO compiled_slice_link_row (slice_id, is_call, compile_id, "
                              "graph_id, join_key, note_id) VALUES (?1, 1, ?2, ?3, 'K5', ?4)"));
    std::optional<std::int64_t> note_id;
    if (model.graph_id == 0) {
      ASSIGN_OR_RETURN(note_id, NoteId(database_, "no log of the compile of its package"));
    }
    link->Bind(1, slice_id);
    link->Bind(2, model.compile_id == 0 ? std::nullopt : std::optional(model.compile_id));
    link->Bind(3, model.graph_id == 0 ? std::nullopt : std::optional(model.graph_id));
    link->Bind(4, note_id);
    RETURN_IF_ERROR(link->Run());
    return slice_id;
  }

  Result<void> Link(const Event& event, std::int64_t slice_id, std::int64_t kernel_id) {
    std::int64_t kernel_run_id = event.id;
    if (event.is_op) {
      ASSIGN_OR_RETURN(Statement * add,
                       database_.PrepareKept("INSERT INTO kernel_run_row (profile_id, name_id, "
                                             "thread_id, start_ns, duration_ns, op_run_id) "
                                             "SELECT profile_id, name_id, thread_id, start_ns, "
                                             "duration_ns, id FROM op_run_row WHERE id = ?1"));
      add->Bind(1, event.id);
      RETURN_IF_ERROR(add->Run());
      kernel_run_id = sqlite3_last_insert_rowid(database_.handle());
      ASSIGN_OR_RETURN(
          Statement * op,
          database_.PrepareKept("UPDATE op_run_link_row SET slice_id = ?2 WHERE op_run_id = ?1"));
      op->Bind(1, event.id);
      op->Bind(2, slice_id);
      RETURN_IF_ERROR(op->Run());
    }
    ASSIGN_OR_RETURN(
        Statement * link,
        database_.PrepareKept("INSERT INTO kernel_run_link_row (kernel_run_id, "
                              "slice_id, kernel_id, join_key) "
                              "VALUES (?1, ?2, ?3, 'K5') ON CONFLICT (kernel_run_id) DO "
                              "UPDATE SET slice_id = excluded.slice_id, "
                              "kernel_id = excluded.kernel_id, join_key = 'K5', note_id = NULL"));
    link->Bind(1, kernel_run_id);
    link->Bind(2, slice_id);
    link->Bind(3, kernel_id);
    return link->Run();
  }

  Database& database_;
};

}  // namespace

Result<void> JoinPackages(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const std::vector<Model> models, LoadModels(database, run_id));
  if (models.empty()) return {};
  std::vector<std::int64_t> profiles;
  FOR_EACH_ROW(const KinetoProfile& row, Query<KinetoProfile>(database, {.run_id = run_id})) {
    profiles.push_back(row.id);
  }
  Writer writer(database);
  for (const std::int64_t profile_id : profiles) {
    ASSIGN_OR_RETURN(const auto events_of, LoadEvents(database, profile_id, models));
    for (const auto& [thread, events] : events_of) {
      for (std::size_t at = 0; at < events.size();) {
        // The longest model that fits: models are distinct by their names, so two of one length cannot.
        const auto model = std::find_if(
            models.begin(), models.end(),
            [&events = events, at](const Model& one) { return Matches(one, events, at); });
        if (model == models.end()) {
          ++at;
          continue;
        }
        RETURN_IF_ERROR(writer.AddRun(profile_id, thread, *model, &events[at]));
        at += model->kernels.size();
      }
    }
  }
  return {};
}

}  // namespace tlparse
