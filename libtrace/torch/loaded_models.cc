#include "libtrace/torch/loaded_models.h"

#include <chrono>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <string>

#include "core/cache/single_flight.h"
#include "core/errno_scope.h"
#include "core/per_process.h"

namespace libtrace {
namespace {

struct Held {
  std::string key;
  LoadedModels::Model model;
};

struct Models {
  using Model = LoadedModels::Model;

  std::mutex mutex;
  std::list<Held> held;  // the one that was asked for last is first
  std::map<std::string, std::list<Held>::iterator, std::less<>> by_key;
  LoadedModelsStats stats;

  // False: it is not held.
  bool Find(std::string_view key, std::shared_ptr<void>& object);
  // Under the mutex. Moves what is no longer held to `dropped`, whose destructors are not for
  // locks.
  void Hold(std::string_view key, Model model, uint64_t max_size_bytes, std::list<Held>& dropped);
};

bool Models::Find(std::string_view key, std::shared_ptr<void>& object) {
  const std::lock_guard lock(mutex);
  const auto found = by_key.find(key);
  if (found == by_key.end()) return false;
  held.splice(held.begin(), held, found->second);
  ++stats.hit_count;
  object = found->second->model.object;
  return true;
}

void Models::Hold(std::string_view key, Model model, uint64_t max_size_bytes,
                  std::list<Held>& dropped) {
  if (model.size_bytes > max_size_bytes) {
    ++stats.eviction_count;
    return;
  }
  while (stats.size_bytes + model.size_bytes > max_size_bytes) {
    stats.size_bytes -= held.back().model.size_bytes;
    by_key.erase(held.back().key);
    dropped.splice(dropped.begin(), held, std::prev(held.end()));
    ++stats.eviction_count;
  }
  stats.size_bytes += model.size_bytes;
  held.push_front({std::string(key), std::move(model)});
  by_key[held.front().key] = held.begin();
}

}  // namespace

struct LoadedModels::Impl {
  uint64_t max_size_bytes = 0;
  detail::PerProcess<Models> models;
};

LoadedModels::LoadedModels(uint64_t max_size_bytes) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
  impl_->max_size_bytes = max_size_bytes;
}
LoadedModels::~LoadedModels() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
}

std::shared_ptr<void> LoadedModels::GetOrLoad(std::string_view key, FunctionRef<Model()> load,
                                              bool* is_hit) {
  const detail::ErrnoScope keeps_errno;
  Models& models = impl_->models.get();
  std::shared_ptr<void> object;
  *is_hit = models.Find(key, object);
  if (*is_hit) return object;
  // In the table in which compiles wait for each other: a load may wait for one, and the other way.
  const std::string name = std::to_string(reinterpret_cast<uintptr_t>(&models));
  constexpr auto kNoLimit = std::chrono::hours(24 * 365);
  std::shared_ptr<detail::Flight> flight;
  bool waits = true;
  while (waits && flight == nullptr) {
    detail::FlightPlan plan(std::string("loaded\n").append(name).append("\n").append(key),
                            std::string(key), nullptr, nullptr, {.max_wait = kNoLimit});
    *is_hit = plan.WaitOrClaim([&] { return models.Find(key, object); }, flight);
    if (*is_hit) return object;
    waits = plan.gave_up() == detail::GaveUp::kNot;
  }
  const auto count = [&] {
    const std::lock_guard lock(models.mutex);
    ++models.stats.load_count;
  };
  Model model;
  try {
    model = load();
  } catch (...) {
    count();
    throw;
  }
  count();
  std::list<Held> dropped;
  if (flight != nullptr) {
    const std::lock_guard lock(models.mutex);
    models.Hold(key, model, impl_->max_size_bytes, dropped);
  }
  return model.object;
}

LoadedModelsStats LoadedModels::stats() const {
  const detail::ErrnoScope keeps_errno;
  Models& models = impl_->models.get();
  const std::lock_guard lock(models.mutex);
  LoadedModelsStats stats = models.stats;
  stats.model_count = models.held.size();
  return stats;
}

void LoadedModels::Clear() {
  const detail::ErrnoScope keeps_errno;
  std::list<Held> dropped;
  Models& models = impl_->models.get();
  const std::lock_guard lock(models.mutex);
  models.by_key.clear();
  dropped.swap(models.held);
  models.stats.size_bytes = 0;
}

}  // namespace libtrace
