// Locks that show other processes that a file is in use.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

namespace tlparse {

// Locks the first `length` bytes of the open file (0: all); false: another process has locked some of
// them, or the file system has no locks (errno is not EAGAIN or EACCES then). A lock of the open
// file description (F_OFD_SETLK): on the first byte it does not conflict with the locks of the
// process that SQLite takes on bytes from 2^30 on. To close any descriptor of a file drops SQLite's
// locks of this process: close it after the connections.
inline bool LockBytes(int descriptor, off_t length) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = length;
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

}  // namespace tlparse
