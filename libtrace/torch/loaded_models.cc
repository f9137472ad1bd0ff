#include "libtrace/torch/loaded_models.h"

#include <condition_variable>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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
  std::condition_variable loaded;
  std::list<Held> held;  // the one that was asked for last is first
  std::map<std::string, std::list<Held>::iterator, std::less<>> by_key;
  std::map<std::string, std::thread::id, std::less<>> loading;  // and by which thread
  LoadedModelsStats stats;

  // Under the mutex. Moves what is no longer held to `dropped`, whose destructors are not for
  // locks.
  void Hold(std::string_view key, Model model, uint64_t max_size_bytes, std::list<Held>& dropped);
  Model LoadAlone(std::string_view key, FunctionRef<Model()> load, uint64_t max_size_bytes);
};

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

// `key` is in `loading` and is removed in every case.
LoadedModels::Model Models::LoadAlone(std::string_view key, FunctionRef<Model()> load,
                                      uint64_t max_size_bytes) {
  std::list<Held> dropped;
  std::optional<Model> model;
  const auto end = [&] {
    {
      const std::lock_guard lock(mutex);
      ++stats.load_count;
      loading.erase(loading.find(key));
      if (model) Hold(key, *model, max_size_bytes, dropped);
    }
    loaded.notify_all();
  };
  try {
    model = load();
  } catch (...) {
    end();
    throw;
  }
  end();
  return *model;
}

}  // namespace

struct LoadedModels::Impl {
  uint64_t max_size_bytes = 0;
  detail::PerProcess<Models> models;
};

LoadedModels::LoadedModels(uint64_t max_size_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->max_size_bytes = max_size_bytes;
}
LoadedModels::~LoadedModels() = default;

std::shared_ptr<void> LoadedModels::GetOrLoad(std::string_view key, FunctionRef<Model()> load,
                                              bool* is_hit) {
  *is_hit = false;
  Models& models = impl_->models.get();
  {
    std::unique_lock lock(models.mutex);
    while (true) {
      if (const auto found = models.by_key.find(key); found != models.by_key.end()) {
        models.held.splice(models.held.begin(), models.held, found->second);
        ++models.stats.hit_count;
        *is_hit = true;
        return found->second->model.object;
      }
      const auto other = models.loading.find(key);
      if (other == models.loading.end()) break;
      if (other->second == std::this_thread::get_id()) {
        ++models.stats.load_count;
        lock.unlock();
        return load().object;
      }
      models.loaded.wait(lock);
    }
    models.loading.emplace(key, std::this_thread::get_id());
  }
  return models.LoadAlone(key, load, impl_->max_size_bytes).object;
}

LoadedModelsStats LoadedModels::stats() const {
  Models& models = impl_->models.get();
  const std::lock_guard lock(models.mutex);
  LoadedModelsStats stats = models.stats;
  stats.model_count = models.held.size();
  return stats;
}

void LoadedModels::Clear() {
  std::list<Held> dropped;
  Models& models = impl_->models.get();
  const std::lock_guard lock(models.mutex);
  models.by_key.clear();
  dropped.swap(models.held);
  models.stats.size_bytes = 0;
}

}  // namespace libtrace
