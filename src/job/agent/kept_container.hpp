// A container that is kept for one child after another: its first process is entry, which starts them, ends what they
// leave, and empties /tmp and /dev/shm between them (contract/keeper.hpp). Everything else of the container is shared by
// all of them; docs/decisions/26 says what that is.
//
// start() has the shape of host::start_container: the first call makes the container, later ones start a child in it,
// as long as what they ask for differs in arguments, environment and directory only; else a container is made anew.
//
// Threads: start() and end() from one at a time, after the last child was destroyed; a child's signal(), kill_all() and
// usage() from any. Lifetime: outlives the children.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "containers/container.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::agent {

class KeptContainer {
 public:
  using Start =
      std::function<Result<std::unique_ptr<containers::Container>>(const containers::ContainerSpec&, int)>;
  // `entry_program`: its path on the machine.
  KeptContainer(Start start, std::string entry_program);
  ~KeptContainer();

  Result<std::unique_ptr<containers::Container>> start(const containers::ContainerSpec& spec, int output);
  // The container that is there; nothing: none.
  const std::optional<containers::ContainerSpec>& spec() const { return spec_; }
  // Another child may come: nothing went wrong.
  bool usable() const;
  void end();

 private:
  struct State;
  class Child;
  Result<void> make(const containers::ContainerSpec& spec);

  const Start start_;
  const std::string entry_program_;
  std::optional<containers::ContainerSpec> spec_;
  std::shared_ptr<State> state_;  // shared with the child that runs, which may still be told to end
};

}  // namespace trainyard::agent
