#include "base/file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace tlparse {

bool IsNetworkFileSystem(std::uint32_t type) {
  constexpr std::array<std::uint32_t, 13> kTypes = {
      0x6969,      // NFS
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB2
      0x517b,      // SMB
      0x65735546,  // FUSE: sshfs and others
      0x5346414f,  // AFS
      0x01021997,  // 9P
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x00c36400,  // Ceph
      0x19830326,  // BeeGFS
      0x7461636f,  // OCFS2
      0x01161970,  // GFS2
  };
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

bool IsOnNetwork(const std::string& directory) {
  struct statfs status {};
  return statfs(directory.c_str(), &status) == 0 &&
         IsNetworkFileSystem(static_cast<std::uint32_t>(status.f_type));
}

}  // namespace tlparse
