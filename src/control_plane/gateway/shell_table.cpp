#include "gateway/shell_table.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "os/notifier.hpp"

namespace trainyard::gateway {

// The state of a shell, which both sides share.
struct ShellTable::State {
  uint64_t number = 0;
  uint64_t link = 0;
  os::Notifier notifier;

  Mutex mutex;
  std::string to_client GUARDED_BY(mutex);  // whole frames
  // The bytes that the agent may still send.
  uint32_t output_window GUARDED_BY(mutex) = wire::kShellWindowBytes;
  // The bytes that the client may still send.
  uint32_t input_window GUARDED_BY(mutex) = wire::kShellWindowBytes;
  // True once the last frame is in to_client.
  bool ended GUARDED_BY(mutex) = false;
  int exit_code GUARDED_BY(mutex) = -1;
  uint64_t bytes_in GUARDED_BY(mutex) = 0, bytes_out = 0;

  void end(int code, const std::string& reason) REQUIRES(mutex) {
    if (ended) return;
    ended = true;
    exit_code = code;
    to_client += wire::encode_shell(wire::ShellEnded{code, reason});
  }
};

class ShellTable::Open final : public Shell {
 public:
  Open(ShellTable& table, std::shared_ptr<State> state, const ShellOrder& order)
      : table_(table),
        state_(std::move(state)),
        begun_(table.clock_.monotonic()),
        name_(order.job.name + "/" + domain::host_name(order.host)) {}

  ~Open() override {
    table_.forget(state_->number);
    bool ended = false;
    {
      const MutexLock lock(state_->mutex);
      ended = state_->ended;
    }
    // The client has disconnected: an end from this side notifies the agent.
    if (!ended)
      table_.send_(state_->link,
                   wire::ShellData{state_->number, wire::encode_shell_payload(wire::ShellEnded{})});
    const auto took =
        std::chrono::duration_cast<std::chrono::seconds>(table_.clock_.monotonic() - begun_);
    log(Level::info, "gateway", "a shell has ended",
        {{"shell", std::to_string(state_->number)},
         {"host", name_},
         {"exit_code", std::to_string(state_->exit_code)},
         {"seconds", std::to_string(took.count())},
         {"bytes_in", std::to_string(state_->bytes_in)},
         {"bytes_out", std::to_string(state_->bytes_out)}});
  }

  Result<void> take(std::string_view bytes) override {
    decoder_.feed(bytes);
    for (;;) {
      const auto frame = TRY(decoder_.next());
      if (!frame) return {};
      {
        const MutexLock lock(state_->mutex);
        if (const auto* input = std::get_if<wire::ShellInput>(&*frame)) {
          if (input->bytes.size() > state_->input_window)
            return denied("more input than the window allows");
          state_->input_window -= uint32_t(input->bytes.size());
          state_->bytes_in += input->bytes.size();
        } else if (const auto* credit = std::get_if<wire::ShellCredit>(&*frame)) {
          if (credit->bytes > wire::kShellWindowBytes - state_->output_window)
            return corrupt("invalid shell frame: more credit than the window");
          state_->output_window += credit->bytes;
        } else if (!std::holds_alternative<wire::ShellResize>(*frame) &&
                   !std::holds_alternative<wire::ShellInputEnds>(*frame)) {
          return corrupt("unexpected shell frame from the client: only hosts send it");
        }
      }
      if (!table_.send_(state_->link,
                        wire::ShellData{state_->number, wire::encode_shell_payload(*frame)})) {
        const MutexLock lock(state_->mutex);
        state_->end(-1, "the host's agent is not connected");
      }
    }
  }

  std::string give() override {
    state_->notifier.clear();
    const MutexLock lock(state_->mutex);
    return std::exchange(state_->to_client, std::string());
  }

  bool over() override {
    const MutexLock lock(state_->mutex);
    return state_->ended && state_->to_client.empty();
  }

  int descriptor() const override { return state_->notifier.descriptor(); }

 private:
  ShellTable& table_;
  const std::shared_ptr<State> state_;
  const std::chrono::nanoseconds begun_;
  const std::string name_;
  wire::ShellDecoder decoder_;
};

// The first number is larger than those of an earlier server, whose shells may still be ending.
ShellTable::ShellTable(Send send, Clock& clock)
    : send_(std::move(send)), clock_(clock), last_(uint64_t(to_milliseconds(clock.now())) << 16) {}
ShellTable::~ShellTable() = default;

Result<std::unique_ptr<Shell>> ShellTable::open(uint64_t link, const ShellOrder& order) {
  auto state = std::make_shared<State>();
  state->link = link;
  {
    const MutexLock lock(mutex_);
    if (states_.size() >= kShellsOfServerMax)
      return exhausted("the server carries " + std::to_string(kShellsOfServerMax) +
                       " shells already");
    state->number = ++last_;
    states_[state->number] = state;
  }
  const std::string command = join(order.command, " ");
  log(Level::info, "gateway", "a shell is opened",
      {{"shell", std::to_string(state->number)},
       {"host", order.job.name + "/" + domain::host_name(order.host)},
       {"region", order.job.region},
       {"principal", order.principal},
       {"peer", order.peer},
       {"command", command.empty() ? "a shell" : shorten(to_utf8(command), 200)}});
  auto shell = std::make_unique<Open>(*this, state, order);
  if (!send_(link, wire::OpenShell{state->number, order.command, order.terminal,
                                   order.terminal_name, order.columns, order.rows}))
    return conflict("the host's agent is not connected");
  return std::unique_ptr<Shell>(std::move(shell));
}

Result<void> ShellTable::from_agent(uint64_t link, const wire::ShellData& data) {
  const auto frame = TRY(wire::decode_shell_payload(data.payload));
  std::shared_ptr<State> state;
  {
    const MutexLock lock(mutex_);
    const auto found = states_.find(data.shell);
    if (found == states_.end() || found->second->link != link) return {};  // the client has left
    state = found->second;
  }
  {
    const MutexLock lock(state->mutex);
    if (state->ended) return {};
    if (const auto* output = std::get_if<wire::ShellOutput>(&frame)) {
      if (output->bytes.size() > state->output_window)
        return corrupt("more output than the window allows");
      state->output_window -= uint32_t(output->bytes.size());
      state->bytes_out += output->bytes.size();
      state->to_client += wire::encode_shell(frame);
    } else if (const auto* credit = std::get_if<wire::ShellCredit>(&frame)) {
      state->input_window = std::min(wire::kShellWindowBytes, state->input_window + credit->bytes);
      state->to_client += wire::encode_shell(frame);
    } else if (const auto* ended = std::get_if<wire::ShellEnded>(&frame)) {
      state->end(ended->exit_code, to_utf8(ended->reason));
    } else {
      return corrupt("unexpected shell frame from the host: only clients send it");
    }
  }
  state->notifier.notify();
  return {};
}

void ShellTable::link_closed(uint64_t link) {
  const MutexLock lock(mutex_);
  for (auto& [number, state] : states_) {
    if (state->link != link) continue;
    {
      const MutexLock inner(state->mutex);
      state->end(-1, "the host has ended");
    }
    state->notifier.notify();
  }
}

void ShellTable::forget(uint64_t number) {
  const MutexLock lock(mutex_);
  states_.erase(number);
}

}  // namespace trainyard::gateway
