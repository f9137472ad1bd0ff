#include "libtrace/torch/loaded_models.h"

#include <condition_variable>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace libtrace {
namespace {

struct Held {
  std::string key;
  LoadedModels::Model model;
};

}  // namespace

struct LoadedModels::Impl {
  uint64_t max_size_bytes = 0;
  mutable std::mutex mutex;
  std::condition_variable loaded;
  std::list<Held> held;  // the one that was asked for last is first
  std::map<std::string, std::list<Held>::iterator, std::less<>> by_key;
  std::map<std::string, std::thread::id, std::less<>> loading;  // and by which thread
  LoadedModelsStats stats;

  // Under the mutex. Moves what is no longer held to `dropped`, whose destructors are not for
  // locks.
  void Hold(std::string_view key, Model model, std::list<Held>& dropped);
  Model LoadAlone(std::string_view key, FunctionRef<Model()> load);
};

void LoadedModels::Impl::Hold(std::string_view key, Model model, std::list<Held>& dropped) {
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
LoadedModels::Model LoadedModels::Impl::LoadAlone(std::string_view key, FunctionRef<Model()> load) {
  std::list<Held> dropped;
  std::optional<Model> model;
  const auto end = [&] {
    {
      const std::lock_guard lock(mutex);
      ++stats.load_count;
      loading.erase(loading.find(key));
      if (model) Hold(key, *model, dropped);
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

LoadedModels::LoadedModels(uint64_t max_size_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->max_size_bytes = max_size_bytes;
}
LoadedModels::~LoadedModels() = default;

std::shared_ptr<void> LoadedModels::GetOrLoad(std::string_view key, FunctionRef<Model()> load,
                                              bool* is_hit) {
  *is_hit = false;
  {
    std::unique_lock lock(impl_->mutex);
    while (true) {
      if (const auto found = impl_->by_key.find(key); found != impl_->by_key.end()) {
        impl_->held.splice(impl_->held.begin(), impl_->held, found->second);
        ++impl_->stats.hit_count;
        *is_hit = true;
        return found->second->model.object;
      }
      const auto other = impl_->loading.find(key);
      if (other == impl_->loading.end()) break;
      if (other->second == std::this_thread::get_id()) {
        ++impl_->stats.load_count;
        lock.unlock();
        return load().object;
      }
      impl_->loaded.wait(lock);
    }
    impl_->loading.emplace(key, std::this_thread::get_id());
  }
  return impl_->LoadAlone(key, load).object;
}

LoadedModelsStats LoadedModels::stats() const {
  const std::lock_guard lock(impl_->mutex);
  LoadedModelsStats stats = impl_->stats;
  stats.model_count = impl_->held.size();
  return stats;
}

void LoadedModels::Clear() {
  std::list<Held> dropped;
  const std::lock_guard lock(impl_->mutex);
  impl_->by_key.clear();
  dropped.swap(impl_->held);
  impl_->stats.size_bytes = 0;
}

}  // namespace libtrace
