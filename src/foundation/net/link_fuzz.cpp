// Sends any bytes as a peer, and checks that whole frames are delivered unchanged, and that invalid
// ones end the link once.
//
// decoder: src/foundation/net/frame_decoder.cpp
//
// The first byte of an input is the number of parts in which the rest is sent.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "net/link.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace {

using namespace trainyard;

constexpr size_t kFrameBytesMax = 512;

struct Peerless {
  Peerless() {
    auto made =
        net::listen_links("unix:" + directory.path() + "/s",
                          {.opened = nullptr,
                           .frame =
                               [this](const std::shared_ptr<net::Link>&, std::string frame) {
                                 const MutexLock lock(mutex);
                                 CHECK(frame.size() <= kFrameBytesMax, "frames have a limit");
                                 frame_bytes += 4 + frame.size();
                               },
                           .closed =
                               [this](const std::shared_ptr<net::Link>&, Error) {
                                 const MutexLock lock(mutex);
                                 closed++;
                                 changed.notify_all();
                               }},
                          {.frame_bytes_max = kFrameBytesMax});
    CHECK(made, "one can listen in a directory of one's own");
    listener = std::move(*made);
  }

  os::TemporaryDirectory directory;
  Mutex mutex;
  ConditionVariable changed;
  size_t frame_bytes = 0, closed = 0;
  std::unique_ptr<net::LinkListener> listener;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Peerless server;
  if (size == 0) return 0;
  const size_t parts = 1 + data[0] % 8;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  size_t closed_before, frame_bytes_before;
  {
    const MutexLock lock(server.mutex);
    closed_before = server.closed;
    frame_bytes_before = server.frame_bytes;
  }

  const os::File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  (server.directory.path() + "/s").copy(where.sun_path, sizeof where.sun_path - 1);
  CHECK(::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0,
        "the listener is there");
  const size_t step = bytes.size() / parts + 1;
  for (size_t place = 0; place < bytes.size(); place += step)
    if (::send(socket.descriptor(), bytes.data() + place, std::min(step, bytes.size() - place),
               MSG_NOSIGNAL) < 0)
      break;
  ::shutdown(socket.descriptor(), SHUT_WR);

  MutexLock lock(server.mutex);
  server.changed.wait(lock, [&]() REQUIRES(server.mutex) { return server.closed > closed_before; });
  CHECK(server.closed == closed_before + 1, "a link is closed once");
  CHECK(server.frame_bytes - frame_bytes_before <= bytes.size(), "no more comes out than went in");
  return 0;
}
