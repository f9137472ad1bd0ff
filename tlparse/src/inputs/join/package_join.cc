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

Result<std::vector<Model>> ModelsOf(Statement& rows) {
  std::map<std::int64_t, Model> models;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    Model& model = models[rows.Int(0)];
    model.kernels.push_back(rows.Int(1));
    model.names.emplace_back(rows.Text(2));
    model.name = rows.Text(3);
    model.graph_id = rows.Int(4);
    model.compile_id = rows.Int(5);
  }
  std::vector<Model> all;
  for (auto& [id, model] : models) all.push_back(std::move(model));
  return all;
}

// The models of packages, and those that the logs saw AOTInductor compile: its stretches of a log
// have no compile id.
Result<std::vector<Model>> LoadModels(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(
      Statement graphs,
      database.Prepare("SELECT g.id, k.id, k.name, NULL, g.id, g.compile_id "
                       "FROM graph g JOIN compile c ON c.id = g.compile_id AND c.is_synthetic = 1 "
                       "JOIN process p ON p.id = c.process_id "
                       "JOIN log_file f ON f.id = p.log_file_id "
                       "JOIN kernel_row k ON k.content_id = g.provenance_content_id "
                       "WHERE f.run_id = ? AND k.debug_handle IS NOT NULL "
                       "AND k.code_line IS NOT NULL ORDER BY g.id, k.code_line, k.ordinal"));
  graphs.Bind(1, run_id);
  ASSIGN_OR_RETURN(std::vector<Model> models, ModelsOf(graphs));
  ASSIGN_OR_RETURN(
      Statement packages,
      database.Prepare(
          "SELECT m.content_id, k.id, k.name, m.name, 0, 0 FROM package_model_row m "
          "JOIN profile p ON p.id = m.profile_id JOIN kernel_row k ON k.content_id = m.content_id "
          "WHERE p.run_id = ? ORDER BY m.id, k.ordinal"));
  packages.Bind(1, run_id);
  ASSIGN_OR_RETURN(std::vector<Model> packed, ModelsOf(packages));
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT k.id, 0 AS is_op, t.text, k.thread_id, k.start_ns, k.start_ns + k.duration_ns "
          "FROM kernel_run_row k JOIN text_row t ON t.id = k.name_id "
          "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id WHERE k.profile_id = ?1 "
          "AND k.device IS NULL AND k.op_run_id IS NULL AND l.kernel_id IS NULL "
          "UNION ALL SELECT o.id, 1, t.text, o.thread_id, o.start_ns, o.start_ns + o.duration_ns "
          "FROM op_run_row o JOIN text_row t ON t.id = o.name_id "
          "WHERE o.profile_id = ?1 AND o.id NOT IN (SELECT op_run_id "
          "FROM kernel_run_row WHERE profile_id = ?1 AND op_run_id IS NOT NULL) ORDER BY 5, 1"));
  rows.Bind(1, profile_id);
  std::map<std::int64_t, std::vector<Event>> events;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return events;
    std::string name(KernelName(rows.Text(2)));
    if (rows.Int(1) == 0 || wanted.count(name) > 0)
      events[rows.Int(3)].push_back(
          {rows.Int(0), rows.Int(1) != 0, std::move(name), rows.Int(4), rows.Int(5)});
  }
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT id FROM profile WHERE run_id = ? AND kind = 'kineto' ORDER BY id"));
  rows.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    profiles.push_back(rows.Int(0));
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
