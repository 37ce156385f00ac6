// Search without a server: browsers start no Worker for a page that is opened from the disk. This one is a hidden frame.
// The theme's search looks for the name IFrameWorker, and then finds its languages beside the worker's own script.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = (this.inside = frame.contentWindow)
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...addresses) => Promise.all(addresses.map((each) => this.load(each)))
      this.load(address).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach((data) => this.postMessage(data))
      })
    }

    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script")
        script.src = address
        script.onload = () => resolve()
        script.onerror = () => reject(new Error(`cannot load ${address}`))
        this.inside.document.body.append(script)
      })
    }

    set onmessage(listener) {
      this.addEventListener("message", listener)
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data)
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
