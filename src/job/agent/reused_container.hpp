// Reuses one container for several children, one after another. Its first process is entry, as
// container init: it starts the children, ends the processes that they leave, and empties /tmp and
// /dev/shm between them (contract/container_init.hpp). The children share everything else in the
// container (docs/decisions/26).
//
// start() has the signature of containers::start_container: the first call makes the container, and
// later calls start a child in it. If their specs differ in more than arguments, environment and
// directory, a new container is made.
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
  // The specification of the current container; nullopt: there is none.
  const std::optional<containers::ContainerSpec>& spec() const { return spec_; }
  // True if another child can run in the container: no error has occurred in it.
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
