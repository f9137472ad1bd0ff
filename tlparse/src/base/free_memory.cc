#include "base/free_memory.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tlparse {

void GiveBackFreeMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace tlparse
