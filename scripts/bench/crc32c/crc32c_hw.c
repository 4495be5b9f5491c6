// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An accelerated crc32c for User Mode Linux, which has only the generic one. On hardware, kernels
 * have one that is much faster. The module is loaded before anything that asks the crypto API for
 * crc32c, so all measured drivers use it. Owns nothing but the algorithm's registration; any
 * context, no locks.
 */
#include <linux/module.h>
#include <linux/unaligned.h>
#include <crypto/internal/hash.h>

#include "sse.h"

#define CHECK_INPUT	"123456789"
#define CHECK_VALUE	0xe3069283

static int hw_init(struct shash_desc *desc)
{
	u32 *seed = crypto_shash_ctx(desc->tfm);
	u32 *crc = shash_desc_ctx(desc);

	*crc = *seed;
	return 0;
}

static int hw_update(struct shash_desc *desc, const u8 *data, unsigned int len)
{
	u32 *crc = shash_desc_ctx(desc);

	*crc = crc32c_sse(*crc, data, len);
	return 0;
}

static int hw_final(struct shash_desc *desc, u8 *out)
{
	u32 *crc = shash_desc_ctx(desc);

	put_unaligned_le32(~*crc, out);
	return 0;
}

static int hw_digest(struct shash_desc *desc, const u8 *data, unsigned int len, u8 *out)
{
	u32 *seed = crypto_shash_ctx(desc->tfm);

	put_unaligned_le32(~crc32c_sse(*seed, data, len), out);
	return 0;
}

static int hw_setkey(struct crypto_shash *tfm, const u8 *key, unsigned int len)
{
	u32 *seed = crypto_shash_ctx(tfm);

	if (len != sizeof(*seed))
		return -EINVAL;
	*seed = get_unaligned_le32(key);
	return 0;
}

static int hw_seed(struct crypto_tfm *tfm)
{
	u32 *seed = crypto_tfm_ctx(tfm);

	*seed = ~0;
	return 0;
}

static struct shash_alg hw_alg = {
	.digestsize = sizeof(u32),
	.descsize = sizeof(u32),
	.init = hw_init,
	.update = hw_update,
	.final = hw_final,
	.digest = hw_digest,
	.setkey = hw_setkey,
	.base = {
		.cra_name = "crc32c",
		.cra_driver_name = "crc32c-hw",
		.cra_priority = 300,
		.cra_flags = CRYPTO_ALG_OPTIONAL_KEY,
		.cra_blocksize = 1,
		.cra_ctxsize = sizeof(u32),
		.cra_module = THIS_MODULE,
		.cra_init = hw_seed,
	},
};

static int __init hw_module_init(void)
{
	if (~crc32c_sse(~0U, CHECK_INPUT, sizeof(CHECK_INPUT) - 1) != CHECK_VALUE)
		return -EINVAL;
	return crypto_register_shash(&hw_alg);
}

static void __exit hw_module_exit(void)
{
	crypto_unregister_shash(&hw_alg);
}

module_init(hw_module_init);
module_exit(hw_module_exit);
MODULE_DESCRIPTION("crc32c by SSE4.2, for measurements");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_CRYPTO("crc32c");
