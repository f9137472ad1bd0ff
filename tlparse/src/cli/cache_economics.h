// What caches were worth, in the output of `tlparse cache`.
#pragma once

#include <string>
#include <utility>

#include "base/fields.h"
#include "facts/cache/cache.h"

namespace tlparse {

void PrintEconomics(const CacheAnswer& answer);

template <>
struct FieldsOf<CacheEconomics::Reason> {
  using Of = CacheEconomics::Reason;
  static constexpr FieldList list{
      Field{"reason", &Of::text},
      Field{"count", AtLeast<0>(&Of::count)},
  };
};

template <>
struct FieldsOf<CacheEconomics::Within> {
  using Of = CacheEconomics::Within;
  static constexpr FieldList list{
      Field{"time_saved_ns", AtLeast<0>(&Of::saved_ns)},
      Field{"time_taken_ns", AtLeast<0>(&Of::taken_ns)},
  };
};

template <>
struct FieldsOf<std::pair<const std::string, CacheEconomics::Within>> {
  using Of = std::pair<const std::string, CacheEconomics::Within>;
  static constexpr FieldList list{
      Field{"layer", &Of::first},
      Inlined{&Of::second},
  };
};

template <>
struct FieldsOf<CacheEconomics> {
  using Of = CacheEconomics;
  static constexpr FieldList list{
      Field{"layer", &Of::layer},
      Field{"hits", AtLeast<0>(&Of::hits)},
      Field{"misses", AtLeast<0>(&Of::misses)},
      Field{"guard_misses", AtLeast<0>(&Of::guard_misses)},
      Field{"remote_errors", AtLeast<0>(&Of::remote_errors),
            "misses where the remote store gave no usable answer"},
      Field{"bypasses", AtLeast<0>(&Of::bypasses)},
      Field{"disabled", AtLeast<0>(&Of::disabled)},
      Field{"time_saved_ns", AtLeast<0>(&Of::time_saved_ns),
            "by hits; null: the log has no time of any"},
      Field{"time_taken_ns", AtLeast<0>(&Of::time_taken_ns),
            "by misses; null: the log has no time of any"},
      Field{"waited_ns", AtLeast<0>(&Of::waited_ns),
            "for another thread or process that compiled the key"},
      Field{"waits_given_up", AtLeast<0>(&Of::waits_given_up),
            "lookups that compiled the key although another thread or process was compiling it"},
      Field{"within", &Of::within,
            "what of these times another layer counts as well, as these lookups are parts of its "
            "lookups"},
      Field{"bypass_reasons", &Of::bypass_reasons},
  };
};

}  // namespace tlparse
