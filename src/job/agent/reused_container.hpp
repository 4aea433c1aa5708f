// Keeps a container for one child after another: its first process is entry, as container init,
// which starts the children, ends what they leave, and empties /tmp and /dev/shm between them
// (contract/container_init.hpp). They share everything else of the container; docs/decisions/26
// lists it.
//
// start() has the signature of containers::start_container: the first call makes the container,
// later ones start a child in it, as long as their specs differ in arguments, environment and
// directory only; else a new container is made.
//
// Threads: start() and end() from one at a time, after the last child was destroyed; a child's
// signal(), kill_all() and usage() from any. Lifetime: outlives the children.
#pragma once

#include <memory>
#include <optional>

#include "agent/init_container.hpp"
#include "containers/container.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::agent {

class ReusedContainer {
 public:
  // `entry_program`: its path on the machine.
  ReusedContainer(StartContainer start, std::string entry_program);
  ~ReusedContainer();

  Result<std::unique_ptr<containers::Container>> start(const containers::ContainerSpec& spec,
                                                       int output);
  // The current container; nothing: none.
  const std::optional<containers::ContainerSpec>& spec() const { return spec_; }
  // True if another child can run in it: nothing went wrong.
  bool usable() const;
  void end();

 private:
  struct State;
  class Child;
  Result<void> make(const containers::ContainerSpec& spec);

  const StartContainer start_;
  const std::string entry_program_;
  std::optional<containers::ContainerSpec> spec_;
  std::shared_ptr<State> state_;  // shared with the running child, which may still receive a signal
};

}  // namespace trainyard::agent
