/* A CUDA driver without a GPU: enough of libcuda for the runtime's own logic to be tested.

   It keeps contexts, functions, streams and events as plain numbers, records every launch and every
   tensor-map request, and can be told to fail. `fake_*` is its remote control, used through ctypes.
   Two GPUs exist. Device memory is host memory, and nothing is ever computed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int R;
enum { OK = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, CONTEXT_DESTROYED = 709, NOT_FOUND = 500,
       NOT_READY = 600, INVALID_HANDLE = 400, INVALID_PTX = 218, CAPTURE_UNSUPPORTED = 900 };

typedef struct { uint32_t grid[3], block[3], smem; void *stream, *attrs; uint32_t num_attrs; } Config;
typedef struct { int id; char pad[4]; unsigned char value[64]; } Attribute;
typedef struct { uint64_t device, id, alive; } Context;

typedef struct {
  uint32_t grid[3], block[3], smem, num_attrs;
  uint64_t stream, function, context;
  int32_t attr_ids[4];
  uint32_t attr_values[4][3];
  uint64_t num_params;
  unsigned char params[32][128];
  uint64_t param_align[32];
} Launch;

typedef struct {
  uint64_t storage, address;
  uint32_t type, rank, interleave, swizzle, l2, fill;
  uint64_t dims[5], strides[4];
  uint32_t box[5], steps[5];
} MapRequest;

Launch fake_launch;                 /* the latest launch */
MapRequest fake_map;                /* the latest tensor map */
uint64_t fake_param_sizes[32], fake_num_params;
uint64_t fake_launches, fake_loads, fake_waits, fake_records, fake_allocs, fake_pushes;
uint64_t fake_capturing, fake_busy; /* every stream is being captured / has work left */
uint64_t fake_capability = 90, fake_clusters = 66, fake_registers = 168, fake_static_smem = 0;
int32_t fake_smem_limit;            /* the latest dynamic-smem opt-in */
int32_t fake_non_portable;
uint64_t fake_producer, fake_waiter; /* streams of the latest event record / wait */
char fake_log[4096];                /* what the JIT says */

static struct { char call[64]; R code; int times; } failing;
static Context primaries[2] = {{0, 0, 0}, {1, 0, 0}};
static uint64_t next_id = 100, next_handle = 0x1000;
static __thread Context *stack[16];
static __thread int depth;
static __thread int capture_mode;
static uint64_t function_context[65536];

void fake_fail(const char *name, R code, int times) {
  snprintf(failing.call, sizeof failing.call, "%s", name);
  failing.code = code;
  failing.times = times;
}
void fake_reset_context(int device) { primaries[device].alive = 0; }
void fake_make_current(int device) {  /* what a framework does first; -1: no context */
  depth = 0;
  if (device >= 0) {
    Context *c = &primaries[device];
    if (!c->alive) { c->alive = 1; c->id = next_id++; }
    stack[depth++] = c;
  }
}
int fake_current(void) { return depth && stack[depth - 1] ? (int)stack[depth - 1]->device : -1; }

#define TRY(which) do { if (failing.times && !strcmp(failing.call, #which)) { \
  failing.times--; return failing.code; } } while (0)
#define NEED_CONTEXT() do { if (!depth || !stack[depth - 1]) return INVALID_CONTEXT; \
  if (!stack[depth - 1]->alive) return CONTEXT_DESTROYED; } while (0)

R cuInit(unsigned flags) { TRY(cuInit); return OK; }
R cuDriverGetVersion(int *version) { *version = 13000; return OK; }
R cuGetErrorString(R code, const char **text) { *text = "in words"; return OK; }
R cuGetErrorName(R code, const char **text) { *text = "NAME"; return OK; }
R cuDeviceGetCount(int *count) { *count = 2; return OK; }
R cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
R cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Fake %d", device); return OK; }
R cuDeviceGetAttribute(int *value, int which, int device) {
  switch (which) {
    case 75: *value = fake_capability / 10; break;  /* capability major */
    case 76: *value = fake_capability % 10; break;
    case 16: *value = 132; break;                   /* multiprocessors */
    case 97: *value = 232448; break;                /* shared memory per block, opt-in */
    default: return INVALID_VALUE;
  }
  return OK;
}
R cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0; *active = primaries[device].alive != 0; return OK;
}
R cuDevicePrimaryCtxRetain(void **context, int device) {
  Context *c = &primaries[device];
  if (!c->alive) { c->alive = 1; c->id = next_id++; }
  *context = c;
  return OK;
}
R cuCtxGetCurrent(void **context) { *context = depth ? stack[depth - 1] : NULL; return OK; }
R cuCtxSetCurrent(void *context) { if (!depth) depth = 1; stack[depth - 1] = context; return OK; }
R cuCtxPushCurrent(void *context) { fake_pushes++; stack[depth++] = context; return OK; }
R cuCtxPopCurrent(void **context) { *context = stack[--depth]; return OK; }
R cuCtxGetDevice(int *device) { NEED_CONTEXT(); *device = stack[depth - 1]->device; return OK; }
R cuCtxGetId(void *context, unsigned long long *id) { NEED_CONTEXT(); *id = stack[depth - 1]->id; return OK; }
R cuPointerGetAttribute(void *data, int which, uint64_t pointer) {
  TRY(cuPointerGetAttribute); *(int *)data = 0; return OK;
}

R cuModuleLoadData(void **module, const void *image) {
  NEED_CONTEXT(); TRY(cuModuleLoadData);
  if (fake_capturing) return CAPTURE_UNSUPPORTED;
  fake_loads++;
  *module = (void *)(next_handle++);
  return OK;
}
R cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  NEED_CONTEXT();
  char *logs[2] = {0, 0};
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == 3) logs[0] = values[i];  /* info log */
    if (options[i] == 5) logs[1] = values[i];  /* error log */
  }
  if (logs[0]) strcpy(logs[0], fake_log);
  if (logs[1] && failing.times) strcpy(logs[1], "line 7: bad things");
  TRY(cuModuleLoadDataEx);
  fake_loads++;
  *module = (void *)(next_handle++);
  return OK;
}
R cuModuleGetFunction(void **function, void *module, const char *name) {
  NEED_CONTEXT(); TRY(cuModuleGetFunction);
  function_context[next_handle & 65535] = stack[depth - 1]->id;
  *function = (void *)(next_handle++);
  return OK;
}
R cuFuncLoad(void *function) { return OK; }
R cuFuncGetAttribute(int *value, int which, void *function) {
  switch (which) {
    case 0: *value = 65536 / fake_registers / 32 * 32; break;  /* threads per block */
    case 1: *value = fake_static_smem; break;
    case 4: *value = fake_registers; break;
    default: return INVALID_VALUE;
  }
  return OK;
}
R cuFuncSetAttribute(void *function, int which, int value) {
  if (which == 8) fake_smem_limit = value;
  if (which == 14) fake_non_portable = value;
  return OK;
}
R cuOccupancyMaxActiveClusters(int *count, void *function, const Config *config) {
  *count = fake_clusters; return OK;
}
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int threads, size_t smem) {
  *count = fake_clusters ? 1 : 0; return OK;
}
R cuLaunchKernelEx(const Config *config, void *function, void **params, void **extra) {
  NEED_CONTEXT(); TRY(cuLaunchKernelEx);
  if (function_context[(uint64_t)function & 65535] != stack[depth - 1]->id) return INVALID_HANDLE;
  Launch *l = &fake_launch;
  memset(l, 0, sizeof *l);
  memcpy(l->grid, config->grid, 12);
  memcpy(l->block, config->block, 12);
  l->smem = config->smem;
  l->stream = (uint64_t)config->stream;
  l->function = (uint64_t)function;
  l->context = stack[depth - 1]->id;
  l->num_attrs = config->num_attrs;
  for (unsigned i = 0; i < config->num_attrs && i < 4; i++) {
    Attribute *a = (Attribute *)config->attrs + i;
    l->attr_ids[i] = a->id;
    memcpy(l->attr_values[i], a->value, 12);
  }
  l->num_params = fake_num_params;
  for (uint64_t i = 0; i < fake_num_params; i++) {
    memcpy(l->params[i], params[i], fake_param_sizes[i]);
    l->param_align[i] = (uint64_t)params[i] % 128;
  }
  fake_launches++;
  return OK;
}

R cuStreamIsCapturing(void *stream, int *status) { *status = fake_capturing ? 1 : 0; return OK; }
R cuStreamQuery(void *stream) { NEED_CONTEXT(); TRY(cuStreamQuery); return fake_busy ? NOT_READY : OK; }
R cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  fake_waits++; fake_waiter = (uint64_t)stream; return OK;
}
R cuEventCreate(void **event, unsigned flags) { *event = (void *)(next_handle++); return OK; }
R cuEventRecord(void *event, void *stream) { fake_records++; fake_producer = (uint64_t)stream; return OK; }
R cuEventQuery(void *event) { return fake_busy ? NOT_READY : OK; }
R cuThreadExchangeStreamCaptureMode(int *mode) { int old = capture_mode; capture_mode = *mode; *mode = old; return OK; }
int fake_capture_mode(void) { return capture_mode; }

R cuMemAlloc(uint64_t *address, size_t bytes) {
  NEED_CONTEXT(); TRY(cuMemAlloc);
  fake_allocs++;
  *address = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return OK;
}
R cuMemsetD8Async(uint64_t address, unsigned char value, size_t count, void *stream) {
  memset((void *)address, value, count); return OK;
}
R cuMemcpyAsync(uint64_t dst, uint64_t src, size_t bytes, void *stream) {
  memcpy((void *)dst, (void *)src, bytes); return OK;
}
typedef struct { size_t x, y; int type; const void *host; uint64_t device; void *array; size_t pitch; } Side;
typedef struct { Side src, dst; size_t width, height; } Copy2D;
R cuMemcpy2DAsync(const Copy2D *c, void *stream) {
  for (size_t row = 0; row < c->height; row++)
    memcpy((char *)c->dst.device + row * c->dst.pitch, (char *)c->src.device + row * c->src.pitch, c->width);
  return OK;
}

R cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                         const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                         int interleave, int swizzle, int l2, int fill) {
  TRY(cuTensorMapEncodeTiled);
  if ((uint64_t)map % 128) return INVALID_VALUE;
  MapRequest *m = &fake_map;
  memset(m, 0, sizeof *m);
  m->storage = (uint64_t)map;
  m->address = (uint64_t)address;
  m->type = type; m->rank = rank; m->interleave = interleave; m->swizzle = swizzle;
  m->l2 = l2; m->fill = fill;
  memcpy(m->dims, dims, 8 * rank);
  memcpy(m->strides, strides, 8 * (rank - 1));
  memcpy(m->box, box, 4 * rank);
  memcpy(m->steps, steps, 4 * rank);
  memset(map, 0xAB, 128);
  memcpy(map, &m->address, 8);
  return OK;
}

R cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  *function = dlsym(RTLD_DEFAULT, symbol);
  if (!*function) {  /* RTLD_DEFAULT does not see a library that was opened locally */
    Dl_info self;
    dladdr((void *)cuInit, &self);
    void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    *function = dlsym(library, symbol);
  }
  if (status) *status = *function ? 0 : 1;
  return *function ? OK : NOT_FOUND;
}
R cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  return cuGetProcAddress_v2(symbol, function, version, flags, status);
}
