// What a job leaves: model.tar.gz (or, uncompressed, the files below model/) and output.tar.gz, the union of
// all hosts.
//
// Hosts after the first stage their files as plain tars beside the output; the first host merges them with
// its own and removes them. Only a model that is kept is merged: when the job failed, each host's output data
// goes up on its own (the first host's as output.tar.gz), and no model does.
#include "agent/artifact.hpp"

#include <algorithm>

#include "agent/progress.hpp"
#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kModelPlace = "/opt/ml/model";
constexpr const char* kOutputPlace = "/opt/ml/output/data";
constexpr const char* kModelDirectory = "model";
constexpr const char* kOutputDirectory = "output/data";
constexpr std::string_view kModelTar = ".model.tar";
constexpr std::string_view kOutputTar = ".output.tar";

objects::Location output_location(const Site& site) {
  auto location = objects::parse_s3_uri(site.order.spec.output_uri);
  if (!location) return {};
  if (!location->key.empty() && !location->key.ends_with('/')) location->key += '/';
  location->key += site.order.job.name + "/output/";
  return std::move(*location);
}

std::string output_key_of(std::string model_key) {
  if (model_key.ends_with(kModelTar)) model_key.resize(model_key.size() - kModelTar.size());
  return model_key + std::string(kOutputTar);
}

// An archive without one: each of its files becomes an object.
class LooseFiles final : public TarWriter {
 public:
  LooseFiles(Site& site, objects::Location below, Sayings& sayings)
      : site_(site), below_(std::move(below)), sayings_(sayings), buffer_(kBufferBytes) {}

  Result<void> add(const TarEntry& entry, const Source& content) override {
    if (entry.type == TarEntry::Type::directory) return {};
    if (entry.type == TarEntry::Type::link) {
      sayings_.say(std::string(kModelPlace) + "/" + entry.name +
                   " was left out: it is a link, and without an archive there is nothing to keep one in");
      return {};
    }
    objects::PutOptions options;
    options.bytes = entry.bytes;
    const auto writer = TRY(site_.world.objects.put(below_.bucket, below_.key + entry.name, options));
    for (uint64_t left = entry.bytes; left > 0;) {
      const auto wanted = std::span(buffer_).first(std::min<uint64_t>(left, buffer_.size()));
      size_t got = TRY(content(wanted));
      if (got == 0) {  // it became shorter meanwhile
        std::fill(wanted.begin(), wanted.end(), '\0');
        got = wanted.size();
      }
      TRY(writer->write(wanted.first(got)));
      left -= got;
    }
    TRY(writer->commit());
    return {};
  }
  Result<void> finish() override { return {}; }

 private:
  static constexpr size_t kBufferBytes = 256 << 10;
  Site& site_;
  const objects::Location below_;
  Sayings& sayings_;
  std::vector<char> buffer_;
};

// Each file of the union as an object below `to`.
Result<void> put_files(Site& site, const objects::Location& to,
                       const std::function<Result<void>(Artifact&)>& fill) {
  Sayings sayings([&](const std::string& text) { site.world.facts.say(text); });
  LooseFiles files(site, to, sayings);
  Artifact artifact(files, kModelPlace, sayings, site.interruption);
  TRY(fill(artifact));
  sayings.finish();
  return files.finish();
}

// Streams one archive into an object: `fill` adds what it holds.
Result<void> put_archive(Site& site, const objects::Location& to, Compression compression, const char* place,
                         const std::function<Result<void>(Artifact&)>& fill) {
  objects::PutOptions options;
  options.content_type = compression == Compression::gzip ? "application/x-gzip" : "application/x-tar";
  const auto writer = TRY(site.world.objects.put(to.bucket, to.key, options));
  ProgressMeter progress("upload " + to.key.substr(to.key.rfind('/') + 1), site.world.say_now,
                         site.world.clock);
  const auto tar = TRY(write_tar(compression, [&](std::span<const char> bytes) -> Result<void> {
    TRY(site.interruption.check());
    TRY(writer->write(bytes));
    progress.moved(bytes.size());
    return {};
  }));
  Sayings sayings([&](const std::string& text) { site.world.facts.say(text); });
  Artifact artifact(*tar, place, sayings, site.interruption);
  TRY(fill(artifact));
  sayings.finish();
  TRY(tar->finish());
  TRY(writer->commit());
  progress.finish();
  return {};
}

// Adds another host's staged tar. One that is not there is empty: a host without output data stages none.
Result<void> add_staged(Site& site, const std::string& bucket, const std::string& key,
                        const std::string& host, Artifact& artifact) {
  auto reader = site.world.objects.get(bucket, key);
  if (!reader && reader.error().kind == Kind::not_found) return {};
  if (!reader) return std::move(reader).error().in("reading what " + host + " staged");
  return artifact.add_tar([&](std::span<char> buffer) { return (*reader)->read(buffer); }, host)
      .in("merging what " + host + " staged");
}

void remove_staged(Site& site, const std::string& bucket, const std::string& model_key) {
  if (model_key.empty()) return;
  for (const auto& key : {model_key, output_key_of(model_key)}) {
    if (auto removed = site.world.objects.remove(bucket, key); !removed) {
      log(Level::warning, "agent", "a staged object stays behind",
          {{"key", key}, {"error", removed.error().message}});
    }
  }
}

Result<void> put_own_output(Site& site, const Tree& tree, const objects::Location& output) {
  if (!tree.has_files(kOutputDirectory)) return {};
  const std::string name = site.order.host == 0 ? "output.tar.gz" : "output-" + site.host_name() + ".tar.gz";
  const objects::Location to{output.bucket, output.key + name};
  TRY(put_archive(site, to, Compression::gzip, kOutputPlace, [&](Artifact& artifact) {
    return artifact.add_tree(tree, kOutputDirectory, site.host_name());
  }));
  site.done.output_uri = "s3://" + to.bucket + "/" + to.key;
  return {};
}

// The first host's part: everything that was staged, and its own.
Result<void> put_union(Site& site, const Tree& tree, const objects::Location& output) {
  const auto staged = site.run.peers.value_or(std::vector<std::string>{});
  const auto fill = [&](const char* directory, bool of_model) {
    return [&site, &tree, &output, &staged, directory, of_model](Artifact& artifact) -> Result<void> {
      TRY(artifact.add_tree(tree, directory, site.host_name()));
      for (size_t i = 0; i < staged.size(); ++i) {
        if (staged[i].empty()) continue;
        const std::string host = domain::host_name(static_cast<domain::HostIndex>(i + 1));
        TRY(add_staged(site, output.bucket, of_model ? staged[i] : output_key_of(staged[i]), host, artifact));
      }
      return {};
    };
  };
  const bool archive = site.order.spec.compress_model;
  const objects::Location model{output.bucket, output.key + (archive ? "model.tar.gz" : "model/")};
  if (archive) {
    TRY(put_archive(site, model, Compression::gzip, kModelPlace, fill(kModelDirectory, true)));
  } else {
    TRY(put_files(site, model, fill(kModelDirectory, true)));
  }
  site.done.model_uri = "s3://" + model.bucket + "/" + model.key;

  bool any_output = tree.has_files(kOutputDirectory);
  for (const auto& key : staged) {
    any_output = any_output || (!key.empty() && site.world.objects.head(output.bucket, output_key_of(key)));
  }
  if (any_output) {
    const objects::Location data{output.bucket, output.key + "output.tar.gz"};
    TRY(put_archive(site, data, Compression::gzip, kOutputPlace, fill(kOutputDirectory, false)));
    site.done.output_uri = "s3://" + data.bucket + "/" + data.key;
  }
  for (const auto& key : staged) remove_staged(site, output.bucket, key);
  return {};
}

Result<void> put_staged(Site& site, const Tree& tree, const objects::Location& output) {
  const bool has_output = tree.has_files(kOutputDirectory);
  if (!has_output && !tree.has_files(kModelDirectory)) return {};
  const std::string model_key =
      output.key + "staged/" + site.order.attempt.text() + "/" + site.host_name() + std::string(kModelTar);
  TRY(put_archive(site, {output.bucket, model_key}, Compression::none, kModelPlace, [&](Artifact& artifact) {
    return artifact.add_tree(tree, kModelDirectory, site.host_name());
  }));
  if (has_output) {
    TRY(put_archive(
        site, {output.bucket, output_key_of(model_key)}, Compression::none, kOutputPlace,
        [&](Artifact& artifact) { return artifact.add_tree(tree, kOutputDirectory, site.host_name()); }));
  }
  site.done.staged_model = model_key;
  return {};
}

// A directory that the job replaced by a link is left out, and the job's log says so.
void say_what_was_replaced(Site& site) {
  for (const auto& [directory, place] :
       {std::pair(kModelDirectory, kModelPlace), {kOutputDirectory, kOutputPlace}})
    if (const auto below = site.ml_tree->below(directory); !below && below.error().kind == Kind::invalid)
      site.world.facts.say(std::string(place) + " is not kept: " + below.error().message);
}

std::optional<Failure> upload(
    Site& site, const std::function<Result<void>(const Tree&, const objects::Location&)>& work) {
  say_what_was_replaced(site);
  auto done = with_store(site, "artifacts",
                         [&]() -> Result<void> { return work(*site.ml_tree, output_location(site)); });
  if (!done) return failure_of(done.error(), "Artifact upload failed: " + site.order.spec.output_uri);
  return {};
}

}  // namespace

std::optional<Failure> stage_artifacts(Site& site) {
  if (site.order.spec.plain()) return {};
  if (site.order.host == 0 || !site.run.keeps_model()) return {};
  return upload(site, [&](const Tree& tree, const objects::Location& output) {
    return put_staged(site, tree, output);
  });
}

std::optional<Failure> upload_artifacts(Site& site) {
  if (site.order.spec.plain()) return {};
  if (site.run.keeps_model()) {
    if (site.order.host != 0) return {};
    return upload(site, [&](const Tree& tree, const objects::Location& output) {
      return put_union(site, tree, output);
    });
  }
  // The next attempt starts from checkpoints and makes all of it again.
  if (site.run.stop == domain::StopCause::interrupted) {
    if (site.run.staged_model.empty()) return {};
    return upload(site, [&](const Tree&, const objects::Location& output) -> Result<void> {
      remove_staged(site, output.bucket, site.run.staged_model);
      return {};
    });
  }
  if (site.run.staged_model.empty() && !site.ml_tree->has_files(kOutputDirectory)) {
    say_what_was_replaced(site);
    return {};
  }
  return upload(site, [&](const Tree& below, const objects::Location& output) -> Result<void> {
    remove_staged(site, output.bucket, site.run.staged_model);
    return put_own_output(site, below, output);
  });
}

}  // namespace trainyard::agent
