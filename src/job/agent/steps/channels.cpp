// Provides the input channels below /opt/ml/input/data. A directory of a shared file system is
// mounted at <channel>. Objects are below <channel>/, with a manifest next to it: mounted and
// fetched as they are read, or copied. In Pipe mode they are streamed through the FIFOs
// <channel>_<epoch>.
#include "agent/files/channels.hpp"

#include <utility>

#include "agent/files/file_mode.hpp"
#include "agent/report/progress.hpp"
#include "agent/sources.hpp"
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "containers/rootless_sandbox.hpp"
#include "contract/contract.hpp"
#include "os/mounts.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kInput = "input/data";

// The machine's marks of listings, next to its cache.
const ListingMarks* listing_marks(StepContext& context) {
  if (!context.listing_marks && context.world.cache != nullptr)
    context.listing_marks = std::make_unique<ListingMarks>(
        context.world.cache->settings().directory + "/listings", context.order.objects_endpoint);
  return context.listing_marks.get();
}

Result<ListedShare> list_share_of(StepContext& context, const domain::Channel& channel,
                                  const Slot& slot) {
  return list_share(context.world.objects, channel, slot, listing_marks(context),
                    context.interruption);
}

ChannelMounts& mounts_of(StepContext& context) {
  if (!context.channel_mounts) {
    const bool limited = context.volume_limited;
    context.channel_mounts = std::make_unique<ChannelMounts>(
        context.world.objects, context.world.cache, context.world.clock,
        context.order.objects_endpoint, "job " + context.order.job.name,
        ChannelMountPlaces{context.path(kMountedObjects),
                           context.path(limited ? kChannelLayers : kUnlimitedChannelLayers),
                           context.path(limited ? kChannelBlocks : kUnlimitedChannelBlocks),
                           containers::in_rootless_sandbox()},
        [&context](const std::string& text) { context.world.facts.say(text); });
  }
  return *context.channel_mounts;
}

// Adds the mount of a channel's directory in the container; its source is the mount on this
// machine.
containers::Mount container_mount(const StepContext& context, const domain::Channel& channel) {
  containers::Mount mount;
  mount.source = context.path(kFileSystems + ("/" + channel.name));
  mount.destination = std::string(contract::kBase) + "/" + kInput + "/" + channel.name;
  return mount;
}

Result<void> write_manifest(StepContext& context, const domain::Channel& channel,
                            const ListedShare& share) {
  const std::string inside = std::string(kInput) + "/" + channel.name;
  TRY(context.ml_tree->make(inside));
  return context.ml_tree->write(inside + "-manifest",
                                contract::channel_manifest(share.prefix_uri, share.keys));
}

// Returns the reason why this host has to copy a channel; "" if there is none.
std::string why_no_mount(const StepContext& context) {
  return context.order.reuse_host ? "a reused host keeps its mounts" : why_no_fuse();
}

Result<void> copy_share(StepContext& context, const domain::Channel& channel,
                        const ListedShare& share, ProgressMeter& progress) {
  progress.expect(bytes_of(share.downloads));
  const auto store = counted(context.world.objects, progress, false);
  const auto directory = TRY(context.ml_tree->make(std::string(kInput) + "/" + channel.name));
  TRY(download_share(*store, share.downloads, directory, context.interruption));
  context.copied_input_bytes += bytes_of(share.downloads);
  return write_manifest(context, channel, share);
}

// Mounts a channel in File mode. The container sets the owner of the files when it starts: only
// then are its ids known.
Result<void> mount_files(StepContext& context, const domain::Channel& channel,
                         const ListedShare& share) {
  auto mount = container_mount(context, channel);
  mount.read_only = false;
  const auto free = context.ml_tree->free_bytes();
  mount.set_owner = TRY(mounts_of(context).mount_writable(
      mount.source, channel.name, mounted_objects(share.downloads), free ? *free : 0));
  context.mounts.push_back(std::move(mount));
  return write_manifest(context, channel, share);
}

FileModeChoice choice_for(const StepContext& context, const domain::Channel& channel) {
  FileModeFacts facts;
  facts.copies_wanted = context.order.copy_channels || channel.compression == "Gzip";
  facts.holds_sources = source_archive(context.order.spec)
                            .starts_with(std::string(kInput) + "/" + channel.name + "/");
  facts.why_no_mount = why_no_mount(context);
  return choose_file_mode(facts);
}

Result<void> bring_files(StepContext& context, const domain::Channel& channel, const Slot& slot) {
  auto choice = choice_for(context, channel);
  ProgressMeter progress("channel " + channel.name, context.world.send_now, context.world.clock);
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    auto share = TRY(list_share_of(context, channel, slot));
    if (choice.mounts) TRY(complete(context.world.objects, share.downloads, context.interruption));
    if (!is_small(share.downloads.size(), bytes_of(share.downloads))) {
      if (choice.mounts) {
        const auto mounted = mount_files(context, channel, share);
        if (mounted || mounted.error().kind != Kind::unavailable) return mounted;
        choice = choose_file_mode({false, false, mounted.error().message});
      }
      const std::string note = std::exchange(choice.note, "");
      if (!note.empty()) context.world.facts.say("channel " + channel.name + " " + note);
    }
    return copy_share(context, channel, share, progress);
  }));
  progress.finish();
  return {};
}

Result<void> copy_instead(StepContext& context, const domain::Channel& channel, const Slot& slot,
                          const std::string& why) {
  context.world.facts.say("channel " + channel.name +
                          ": FastFile mode is not available, copying as in File mode: " + why);
  ProgressMeter progress("channel " + channel.name, context.world.send_now, context.world.clock);
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    const auto share = TRY(list_share_of(context, channel, slot));
    return copy_share(context, channel, share, progress);
  }));
  progress.finish();
  return {};
}

Result<void> mount_fast_file(StepContext& context, const domain::Channel& channel,
                             const Slot& slot) {
  if (const auto why = why_no_mount(context); !why.empty())
    return copy_instead(context, channel, slot, why);
  ListedShare share;
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    share = TRY(list_share_of(context, channel, slot));
    return complete(context.world.objects, share.downloads, context.interruption);
  }));
  auto mount = container_mount(context, channel);
  const auto mounted = mounts_of(context).mount(mount.source, channel.name,
                                                mounted_objects(std::move(share.downloads)));
  if (!mounted && mounted.error().kind == Kind::unavailable)
    return copy_instead(context, channel, slot, mounted.error().message);
  TRY(mounted);
  context.mounts.push_back(std::move(mount));
  return write_manifest(context, channel, share);
}

// Lists a channel in Pipe mode, so that errors are reported before the process runs. Streaming
// starts with the step "pipes".
Result<void> prepare_pipe(StepContext& context, const domain::Channel& channel, const Slot& slot,
                          const std::string& doing) {
  std::optional<data::Contents> contents;
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    contents = TRY(stream_channel(context.world.objects, channel, listing_marks(context),
                                  context.interruption));
    return {};
  }));
  const bool sharded = channel.distribution == domain::Distribution::sharded_by_s3_key;
  const data::Form form{channel.compression == "Gzip", channel.record_wrapper == "RecordIO"};
  context.pipes.push_back(std::make_unique<ChannelPipe>(
      context.world.objects, context.world.clock, context.ml(kInput), channel.name,
      std::move(*contents), data::Deal{channel.shuffle_seed, sharded, slot.host, slot.hosts}, form,
      [&context, doing](const Error& error) {
        context.input_failure.record(failure_of(error, doing));
      }));
  return {};
}

// Mounts a shared file system on a path that no job can change, and adds its mount in the
// container.
Result<void> mount_channel(StepContext& context, const domain::Channel& channel) {
  const auto& source = *channel.file_system;
  const auto root = context.order.file_systems.find(source.id);
  if (root == context.order.file_systems.end())
    return not_found("file system " + source.id + " not found");
  auto mount = container_mount(context, channel);
  mount.read_only = !source.writable;
  mount.identity = shared_identity(context);
  TRY(os::bind_beneath(root->second, source.path, mount.source).in(source.id));
  context.mounts.push_back(std::move(mount));
  return {};
}

Result<void> bring(StepContext& context, const domain::Channel& channel, const Slot& slot,
                   const std::string& doing) {
  if (channel.file_system) return mount_channel(context, channel);
  switch (channel.input_mode) {
    case domain::InputMode::file:
      return bring_files(context, channel, slot);
    case domain::InputMode::pipe:
      return prepare_pipe(context, channel, slot, doing);
    case domain::InputMode::fast_file:
      return mount_fast_file(context, channel, slot);
  }
  return {};
}

}  // namespace

std::optional<Failure> bring_channels(StepContext& context) {
  const auto& spec = context.order.spec;
  for (const auto& channel : spec.channels) {
    const auto slot = slot_of(channel, spec.groups, context.order.host);
    if (!slot) continue;
    const std::string doing = "Data download failed: channel " + channel.name;
    // AWS's pattern for names allows "." and "..", which cannot be names of directories.
    if (channel.name == "." || channel.name == "..") {
      return Failure{domain::Fault::client, doing + ": invalid name for a directory"};
    }
    auto brought = bring(context, channel, *slot, doing);
    if (!brought) return failure_of(brought.error(), doing);
  }
  return {};
}

InputBytes input_bytes(const StepContext& context) {
  mount::SourceCounts counts;
  if (context.channel_mounts) counts = context.channel_mounts->counts();
  return {context.copied_input_bytes + counts.fetched_bytes, counts.cached_bytes};
}

void end_channels(StepContext& context) { context.channel_mounts.reset(); }

std::optional<Failure> start_pipes(StepContext& context) {
  for (auto& pipe : context.pipes) {
    if (auto started = pipe->start(); !started)
      return failure_of(started.error(), "making the channels' FIFOs");
  }
  return {};
}

std::optional<Failure> finish_pipes(StepContext& context) {
  end_pipes(context);
  return {};
}

void end_pipes(StepContext& context) { context.pipes.clear(); }

}  // namespace trainyard::agent
