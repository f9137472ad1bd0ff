// What caches were worth, in the output of `tlparse cache`.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "base/fields.h"
#include "facts/cache/cache.h"

namespace tlparse {

void PrintEconomics(const CacheAnswer& answer);

template <>
struct FieldsOf<CacheEconomics::Reason> {
  using Of = CacheEconomics::Reason;
  static constexpr std::tuple list{
      Field{"reason", &Of::text},
      Field{"count", &Of::count},
  };
};

template <>
struct FieldsOf<CacheEconomics::Within> {
  using Of = CacheEconomics::Within;
  static constexpr std::tuple list{
      Field{"time_saved_ns", &Of::saved_ns},
      Field{"time_taken_ns", &Of::taken_ns},
  };
};

template <>
struct FieldsOf<std::pair<const std::string, CacheEconomics::Within>> {
  using Of = std::pair<const std::string, CacheEconomics::Within>;
  static constexpr std::tuple list{
      Field{"layer", &Of::first},
      Inlined{&Of::second},
  };
};

template <>
struct FieldsOf<CacheEconomics> {
  using Of = CacheEconomics;
  static constexpr std::tuple list{
      Field{"layer", &Of::layer},
      Field{"hits", &Of::hits},
      Field{"misses", &Of::misses},
      Field{"guard_misses", &Of::guard_misses},
      Field{"remote_errors", &Of::remote_errors,
            "misses where the remote store gave no usable answer"},
      Field{"bypasses", &Of::bypasses},
      Field{"disabled", &Of::disabled},
      Field{"time_saved_ns", &Of::time_saved_ns, "by hits; null: the log has no time of any"},
      Field{"time_taken_ns", &Of::time_taken_ns, "by misses; null: the log has no time of any"},
      Field{"waited_ns", &Of::waited_ns, "for another thread or process that compiled the key"},
      Field{"waits_given_up", &Of::waits_given_up,
            "lookups that compiled the key although another thread or process was compiling it"},
      Field{"within", &Of::within,
            "what of these times another layer counts as well, as these lookups are parts of its "
            "lookups"},
      Field{"bypass_reasons", &Of::bypass_reasons},
  };
};

}  // namespace tlparse
