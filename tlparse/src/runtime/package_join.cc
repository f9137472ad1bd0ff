#include "runtime/package_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace tlparse {
namespace {

struct Model {
  std::vector<std::int64_t> kernels;  // ids, in order
  std::vector<std::string> names;
};

struct Event {
  std::int64_t id = 0;
  bool is_op = false;  // of op_run_row, not kernel_run_row
  std::string name;
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

Result<std::vector<Model>> LoadModels(Database& database, std::int64_t run_id) {
  std::map<std::int64_t, Model> models;
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT m.content_id, k.id, k.name FROM package_model_row m JOIN profile p ON p.id = "
          "m.profile_id JOIN kernel_row k ON k.content_id = m.content_id WHERE p.run_id = ? "
          "ORDER BY m.id, k.ordinal"));
  rows.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    Model& model = models[rows.Int(0)];
    model.kernels.push_back(rows.Int(1));
    model.names.emplace_back(rows.Text(2));
  }
  std::vector<Model> distinct;
  // A kernel_information.json beside its own package says the same: the first counts.
  for (auto& [content, model] : models) {
    if (std::none_of(distinct.begin(), distinct.end(),
                     [&model = model](const Model& other) { return other.names == model.names; }))
      distinct.push_back(std::move(model));
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
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT k.id, 0 AS is_op, t.text, k.thread_id, k.start_ns FROM "
                                    "kernel_run_row k JOIN text_row t ON t.id = k.name_id "
                                    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id "
                                    "WHERE k.profile_id = ?1 AND k.device IS NULL AND "
                                    "k.op_run_id IS NULL AND l.kernel_id IS NULL UNION ALL "
                                    "SELECT o.id, 1, t.text, o.thread_id, o.start_ns FROM "
                                    "op_run_row o JOIN text_row t ON t.id = o.name_id "
                                    "WHERE o.profile_id = ?1 AND o.id NOT IN (SELECT op_run_id "
                                    "FROM kernel_run_row WHERE profile_id = ?1 AND "
                                    "op_run_id IS NOT NULL) ORDER BY 5, 1"));
  rows.Bind(1, profile_id);
  std::map<std::int64_t, std::vector<Event>> events;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return events;
    std::string name(KernelName(rows.Text(2)));
    if (rows.Int(1) == 0 || wanted.count(name) > 0)
      events[rows.Int(3)].push_back({rows.Int(0), rows.Int(1) != 0, std::move(name)});
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

  Result<void> Link(const Event& event, std::int64_t kernel_id) {
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
    }
    ASSIGN_OR_RETURN(Statement * link,
                     database_.PrepareKept("INSERT INTO kernel_run_link_row (kernel_run_id, "
                                           "kernel_id, join_key) VALUES (?1, ?2, 'K5') "
                                           "ON CONFLICT (kernel_run_id) DO UPDATE SET kernel_id = "
                                           "excluded.kernel_id, join_key = 'K5', note_id = NULL"));
    link->Bind(1, kernel_run_id);
    link->Bind(2, kernel_id);
    return link->Run();
  }

 private:
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
        for (const std::int64_t kernel_id : model->kernels)
          RETURN_IF_ERROR(writer.Link(events[at++], kernel_id));
      }
    }
  }
  return {};
}

}  // namespace tlparse
