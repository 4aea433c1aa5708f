#include "os/packet_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace trainyard::os {

Result<std::pair<PacketSocket, File>> PacketSocket::pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return from_errno("making a pair of sockets");
  return std::pair(PacketSocket(File(ends[0])), File(ends[1]));
}

Result<void> PacketSocket::send(std::string_view bytes, int descriptor) const {
  if (bytes.size() > kPacketBytesMax)
    return exhausted("sending a packet of " + std::to_string(bytes.size()) +
                     " bytes: the limit is " + std::to_string(kPacketBytesMax));
  iovec content{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  for (;;) {
    if (::sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL) >= 0) return ok();
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return cancelled("the other side has closed");
    return from_errno("sending a packet");
  }
}

Result<std::optional<PacketSocket::Packet>> PacketSocket::receive(Duration at_most) const {
  pollfd ready{socket_.descriptor(), POLLIN, 0};
  const int count = ::poll(&ready, 1, int(std::clamp<int64_t>(at_most.count(), 0, INT_MAX)));
  if (count == 0 || (count < 0 && errno == EINTR)) return std::optional<Packet>();
  if (count < 0) return from_errno("waiting for a packet");
  Packet packet;
  packet.bytes.resize(kPacketBytesMax);
  iovec content{packet.bytes.data(), packet.bytes.size()};
  msghdr message = {};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do got = ::recvmsg(socket_.descriptor(), &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno != ECONNRESET) return from_errno("receiving a packet");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); got >= 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
      continue;
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    packet.descriptor = File(descriptor);
  }
  // No sender sends an empty packet.
  if (got <= 0) return cancelled("the other side has closed");
  if (message.msg_flags & MSG_TRUNC) return corrupt("receiving a packet: too long");
  packet.bytes.resize(size_t(got));
  return std::optional(std::move(packet));
}

}  // namespace trainyard::os
