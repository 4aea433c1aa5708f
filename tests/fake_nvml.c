/* The functions of libnvidia-ml.so.1 (NVML) that Trainyard calls, for machines of the tests, which have no GPU.
 *
 * TRAINYARD_TEST_NVML is a file, read at each call, with a line for each GPU: NUMBER BUSY USED TOTAL. NUMBER is that of its device
 * file, and "-" is a value that the GPU does not support. A GPU "lost" fails, one "hangs" never returns, one "crashes" the process.
 * Without the file, the driver is not loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kUninitialized = 1, kInvalid = 2, kNotSupported = 3, kDriverNotLoaded = 9, kLost = 15, kGpus = 64 };

struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct gpu { char number[16], busy[16], used[24], total[24]; };

static int started;
static struct gpu gpus[kGpus];

static int read_gpus(unsigned *count) {
  FILE *const file = fopen(getenv("TRAINYARD_TEST_NVML"), "r");
  if (!file) return kDriverNotLoaded;
  for (*count = 0; *count < kGpus; ++*count) {
    struct gpu *const gpu = &gpus[*count];
    if (fscanf(file, "%15s %15s %23s %23s", gpu->number, gpu->busy, gpu->used, gpu->total) != 4) break;
  }
  return fclose(file), kSuccess;
}

int nvmlInit_v2(void) {
  unsigned count;
  const int code = read_gpus(&count);
  started = code == kSuccess;
  return code;
}
int nvmlShutdown(void) { return started ? (started = 0, kSuccess) : kUninitialized; }
int nvmlDeviceGetCount_v2(unsigned *count) { return started ? read_gpus(count) : kUninitialized; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  unsigned count;
  const int code = nvmlDeviceGetCount_v2(&count);
  if (code != kSuccess || index >= count) return code != kSuccess ? code : kInvalid;
  *device = &gpus[index];
  if (strcmp(gpus[index].busy, "crashes") == 0) abort();
  while (strcmp(gpus[index].busy, "hangs") == 0) pause();
  return strcmp(gpus[index].busy, "lost") == 0 ? kLost : kSuccess;
}
int nvmlDeviceGetMinorNumber(void *device, unsigned *number) {
  *number = (unsigned)atoi(((struct gpu *)device)->number);
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization) {
  const struct gpu *const gpu = device;
  if (strcmp(gpu->busy, "-") == 0) return kNotSupported;
  utilization->gpu = utilization->memory = (unsigned)strtoul(gpu->busy, NULL, 10);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
  const struct gpu *const gpu = device;
  memory->used = strtoull(gpu->used, NULL, 10);
  memory->total = strtoull(gpu->total, NULL, 10);
  memory->free = memory->total - memory->used;
  return kSuccess;
}
