// Asks `pdca guard builder` before each tool call of a builder. Written by `pdca init`.
import { spawnSync } from "node:child_process"

export const PdcaGuard = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (!process.env.PDCA_WORKTREE) return
    const call = JSON.stringify({ ...input, args: output.args, directory })
    const asked = spawnSync("pdca", ["guard", "builder", "--agent", "opencode"], { input: call, encoding: "utf8" })
    if (asked.status !== 0) throw new Error(asked.stderr || `pdca guard did not answer: ${asked.error ?? asked.status}`)
  },
})
